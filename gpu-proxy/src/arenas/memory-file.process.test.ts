import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { identifyProcess, isAlive } from '@nvidia-virtual/service/process-table';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { pino } from 'pino';
import { Addon } from '../host/addon.js';
import { locateInstallation } from '../host/installation.js';
import { DIRECT, HostLauncher } from '../host/launcher.js';
import { arenaPayers, canReadPayers, nodePayer } from '../testing/page-payers.js';
import { MemoryFile } from './memory-file.js';

const MiB = 2 ** 20;
const { addon: library, arena, launcher: executable } = locateInstallation();
const addon = new Addon(library);
/** Maps the file of descriptor 3 with all its pages. */
const MAPPING = `
import mmap, os, sys
mapped = mmap.mmap(3, os.fstat(3).st_size)
for at in range(0, len(mapped), 4096): mapped[at]
print("mapped", flush=True)
sys.stdin.read()`;

async function make(options: Partial<Parameters<MemoryFile['populate']>[0]> = {}) {
  const file = MemoryFile.create(6 * MiB, addon);
  await file.populate({ launcher: DIRECT, executable: arena, ...options });
  return file;
}

test('a file is populated, and freed when the last process gives it up', async () => {
  const file = await make();
  let freed = false;
  void file.freed.then(() => {
    freed = true;
  });
  const stdio = ['pipe', 'ignore', 'inherit', file.fd] as const;
  const other = spawn('/bin/cat', { stdio: [...stdio] });
  await once(other, 'spawn');
  expect(statSync(`/proc/self/fd/${file.fd}`).blocks * 512).toBe(6 * MiB);
  file.close();
  const found = MemoryFile.find(file.handle, file.size, addon);
  found?.close();
  expect(freed).toBe(false);
  other.stdin?.end();
  for (const each of [file, found]) await each?.freed;
  expect(MemoryFile.find(file.handle, file.size, addon)).toBeUndefined();
});

test('a handle names no other file', async () => {
  const [file, other] = [await make(), await make()];
  file.close();
  await file.freed;
  const next = await make();
  expect(MemoryFile.find(file.handle, file.size, addon)).toBeUndefined();
  expect(() => MemoryFile.find('00', 0, addon)).toThrow('needs a handle of a memory file');
  for (const each of [other, next]) each.close();
});

test('the pages of a file whose process was killed are freed', async () => {
  const directory = makePrivateDirectory();
  const script = path.join(directory, 'arena');
  writeFileSync(script, `#!/bin/sh\n${arena}\nkill -9 $$\n`, { mode: 0o755 });
  const file = MemoryFile.create(6 * MiB, addon);
  await expect(file.populate({ launcher: DIRECT, executable: script })).rejects.toThrow(
    'nvidia-virtual-arena was killed by SIGKILL',
  );
  file.close();
  await file.freed;
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

(canReadPayers ? test : test.skip)('all pages are charged to the cgroup of the node', async () => {
  const launcher = new HostLauncher({
    executable,
    namespaces: { mounts: '/proc/self/ns/mnt', cgroups: '/proc/self/ns/cgroup', root: '/' },
    files: { allocations: '/none', shared: [], driver: '/none' },
    logger: pino({ enabled: false }),
  });
  const file = await make({ launcher });
  const stdio = ['pipe', 'pipe', 'inherit', file.fd] as const;
  const other = spawn('python3', ['-c', MAPPING], { stdio: [...stdio] });
  file.close();
  await once(other.stdout as Readable, 'data');
  expect(arenaPayers(other.pid as number)).toEqual(new Set([nodePayer()]));
  other.kill('SIGKILL');
  await file.freed;
});
