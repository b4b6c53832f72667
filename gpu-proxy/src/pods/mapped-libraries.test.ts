import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { parseMaps, readMaps } from './mapped-libraries.js';

function line(inode: number, file: string, permissions = 'r-xp'): string {
  return `7f0000000000-7f0000001000 ${permissions} 00000000 08:01 ${inode}                 ${file}`;
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
  const { driver, musl } = parseMaps(maps);
  expect({ driver: [...driver.values()], musl }).toEqual({
    driver: [
      { file: '/usr/lib/x86_64-linux-gnu/libcuda.so.1', inode: 7 },
      { file: '/usr/local/cuda-12.4/compat/libcuda.so.550.54.15', inode: 8 },
      { file: '/opt/driver/libnvidia-ml.so.1 (deleted)', inode: 9 },
      { file: '/opt/a b/libcuda.so', inode: 12 },
    ],
    musl: false,
  });
});

test('a library that is only read is not counted', () => {
  const lines = ['/opt/libcuda.so.1', '/lib/ld-musl-x86_64.so.1'].map((file) =>
    line(7, file, 'r--p'),
  );
  expect(parseMaps(lines)).toEqual({ driver: new Map(), musl: false });
});

test('the loader of musl is found', () => {
  expect(parseMaps([line(7, '/lib/ld-musl-x86_64.so.1')]).musl).toBe(true);
});

test('a path that a tenant chose is shortened and printable', () => {
  const { driver } = parseMaps([line(7, `/${'\x1b\u202e'.repeat(3000)}/libcuda.so.1`)]);
  const hostile = driver.get(7);
  expect(hostile?.file).toMatch(/^\.\.\.\?+\/libcuda\.so\.1$/);
  expect(hostile?.file.length).toBeLessThan(210);
});

/** Maps libcuda.so.1 in a directory with a long name, between very many other mappings. */
const MANY = `
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
def fill(count):
  for i in range(count): libc.mmap(None, 4096, 1 + i % 2, 0x22, -1, 0)
fill(int(sys.argv[2]))
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 4096)
libc.mmap(None, 4096, 5, 2, file, 0)
print(flush=True)
sys.stdin.read()`;

async function withMappings<Result>(
  count: number,
  body: (pid: number, file: string) => Promise<Result>,
): Promise<Result> {
  const directory = makePrivateDirectory();
  const file = path.join(directory, 'a'.repeat(250), 'libcuda.so.1');
  mkdirSync(path.dirname(file));
  const child = spawn('python3', ['-c', MANY, file, String(count)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  try {
    await once(child.stdout, 'data');
    return await body(child.pid as number, file);
  } finally {
    child.kill('SIGKILL');
    removePrivateDirectory(directory);
  }
}

test('maps of a process are read in parts', async () => {
  const { driver } = await withMappings(2000, readMaps);
  expect([...driver.values()].map(({ file }) => file.slice(-20))).toEqual(['aaaaaaa/libcuda.so.1']);
});

test('maps are read up to a limit, in little memory', async () => {
  await withMappings(60_000, async (pid) => {
    const before = process.memoryUsage().arrayBuffers;
    expect((await readMaps(pid)).musl).toBe(false);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * 1024 * 1024);
  });
});
