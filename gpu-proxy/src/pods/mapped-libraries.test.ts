import { spawn } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { parseMaps, readMaps } from './mapped-libraries.js';

function line(inode: number, file: string): string {
  return `7f0000000000-7f0000001000 r-xp 00000000 08:01 ${inode}                 ${file}`;
}

test('libraries of the driver are found by their names, once each', () => {
  const maps = [
    '55d000000000-55d000001000 rw-p 00000000 00:00 0                          [heap]',
    line(7, '/usr/lib/x86_64-linux-gnu/libcuda.so.1'),
    line(7, '/usr/lib/x86_64-linux-gnu/libcuda.so.1'),
    line(8, '/usr/local/cuda-12.4/compat/libcuda.so.550.54.15'),
    line(9, '/opt/driver/libnvidia-ml.so.1 (deleted)'),
    line(10, '/usr/lib/libcudart.so.12'),
    line(11, '/opt/libcuda.so.backup'),
    line(12, '/opt/a b/libcuda.so'),
  ];
  expect(parseMaps(maps.join('\n'))).toEqual({
    driver: [
      { file: '/usr/lib/x86_64-linux-gnu/libcuda.so.1', inode: 7 },
      { file: '/usr/local/cuda-12.4/compat/libcuda.so.550.54.15', inode: 8 },
      { file: '/opt/driver/libnvidia-ml.so.1 (deleted)', inode: 9 },
      { file: '/opt/a b/libcuda.so', inode: 12 },
    ],
    musl: false,
  });
});

test('the loader of musl is found', () => {
  expect(parseMaps(line(7, '/lib/ld-musl-x86_64.so.1')).musl).toBe(true);
});

test('a path that a tenant chose is shortened and printable', () => {
  const [hostile] = parseMaps(line(7, `/${'\x1b\xff'.repeat(3000)}/libcuda.so.1`)).driver;
  expect(hostile?.file).toMatch(/^\.\.\.\?+\/libcuda\.so\.1$/);
  expect(hostile?.file.length).toBeLessThan(210);
});

test('maps of a process are read, up to a limit', async () => {
  const many = `
import ctypes, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
for i in range(60000): libc.mmap(None, 4096, 1 + i % 2, 0x22, -1, 0)
print(flush=True)
sys.stdin.read()`;
  const child = spawn('python3', ['-c', many], { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    await new Promise((resolve) => child.stdout.once('data', resolve));
    const { length } = await readMaps(child.pid as number);
    expect(length).toBeGreaterThan(1000);
    expect(length).toBeLessThan(2 * 1024 * 1024);
  } finally {
    child.kill('SIGKILL');
  }
});
