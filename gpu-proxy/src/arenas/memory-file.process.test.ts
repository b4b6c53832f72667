import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { identifyProcess, isAlive } from '@nvidia-virtual/service/process-table';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { pino } from 'pino';
import { Addon } from '../host/addon.js';
import { locateInstallation } from '../host/installation.js';
import { DIRECT, HostLauncher } from '../host/launcher.js';
import { MemoryFile } from './memory-file.js';

const MiB = 2 ** 20;
const { addon: library, arena, launcher: executable } = locateInstallation();
const addon = new Addon(library);
/** The kernel's number of the cgroup that each page is charged to. */
const PAGES = '/proc/kpagecgroup';
const CGROUPS = ['/sys/fs/cgroup/memory/nvidia-virtual', '/sys/fs/cgroup/nvidia-virtual'];
/** Prints the cgroups that the pages of the file of descriptor 3 are charged to. */
const PAYERS = `
import mmap, os, struct
size = os.fstat(3).st_size
mapped = mmap.mmap(3, size)
for at in range(0, size, 4096): mapped[at]
begin = next(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if "-arena" in line)
pages, payers = open("/proc/self/pagemap", "rb"), open("${PAGES}", "rb")
def number(file, index):
    file.seek(8 * index)
    return struct.unpack("Q", file.read(8))[0]
numbers = range(begin // 4096, (begin + size) // 4096)
print(*{number(payers, number(pages, page) & (1 << 55) - 1) for page in numbers})`;

function make(size: number, options: Partial<Parameters<typeof MemoryFile.make>[1]> = {}) {
  return MemoryFile.make(size, {
    ...{ addon, launcher: DIRECT, executable: arena, freed: () => {} },
    ...options,
  });
}

test('a file is populated, and freed when the last process gives it up', async () => {
  let freed = false;
  const file = await make(6 * MiB, {
    freed: () => {
      freed = true;
    },
  });
  const stdio = ['pipe', 'ignore', 'inherit', file.fd] as const;
  const other = spawn('/bin/cat', { stdio: [...stdio] });
  await once(other, 'spawn');
  expect(statSync(`/proc/self/fd/${file.fd}`).blocks * 512).toBe(6 * MiB);
  file.close();
  expect(freed).toBe(false);
  other.stdin?.end();
  await file.freed;
  expect(freed).toBe(true);
});

test('the pages of a file whose process was killed are freed', async () => {
  const directory = makePrivateDirectory();
  const script = path.join(directory, 'arena');
  writeFileSync(script, `#!/bin/sh\n${arena}\nkill -9 $$\n`, { mode: 0o755 });
  const freed = new Promise<void>((resolve) => {
    const made = make(6 * MiB, { executable: script, freed: resolve });
    void expect(made).rejects.toThrow('nvidia-virtual-arena was killed by SIGKILL');
  });
  await freed;
  removePrivateDirectory(directory);
});

test('the process ends with its gpu-proxy', async () => {
  const script = `
import os, signal, subprocess, sys
file = os.memfd_create("arena")
os.ftruncate(file, 2 << 30)
os.dup2(file, 3)
child = subprocess.Popen([sys.argv[1]], pass_fds=[3])
while len(os.listdir(f"/proc/{child.pid}/task")) == 1: pass
os.kill(child.pid, signal.SIGSTOP)
print(child.pid, flush=True)
sys.stdin.read()`;
  const parent = spawn('python3', ['-c', script, arena], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = await once(parent.stdout, 'data');
  const child = identifyProcess(Number(line));
  expect(isAlive(child)).toBe(true);
  parent.kill('SIGKILL');
  await until(() => !isAlive(child));
});

(process.getuid?.() === 0 && existsSync(PAGES) ? test : test.skip)(
  'all pages are charged to the cgroup of the node',
  async () => {
    const launcher = new HostLauncher({
      executable,
      namespaces: { mounts: '/proc/self/ns/mnt', cgroups: '/proc/self/ns/cgroup', root: '/' },
      files: { allocations: '/none', shared: [], driver: '/none' },
      logger: pino({ enabled: false }),
    });
    const file = await make(6 * MiB, { launcher });
    const stdio = ['ignore', 'pipe', 'inherit', file.fd] as const;
    const payers = execFileSync('python3', ['-c', PAYERS], { encoding: 'utf8', stdio: [...stdio] });
    file.close();
    const cgroup = CGROUPS.find((one) => existsSync(one)) as string;
    expect(payers.trim()).toBe(String(statSync(cgroup).ino));
  },
);
