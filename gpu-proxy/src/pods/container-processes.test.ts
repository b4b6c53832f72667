import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { ContainerProcesses } from './container-processes.js';

const UID = '0b6f6c5e-1111-4222-8333-944444444444';
const [MAIN, SIDECAR] = ['a'.repeat(64), 'b'.repeat(64)] as [string, string];

let proc: string;
beforeEach(() => {
  proc = makePrivateDirectory();
  writeCgroup(1, '/init.scope');
});
afterEach(() => removePrivateDirectory(proc));

function writeCgroup(pid: number, cgroup: string): void {
  mkdirSync(path.join(proc, String(pid)), { recursive: true });
  writeFileSync(path.join(proc, String(pid), 'cgroup'), `0::${cgroup}\n`);
}

function startIn(container: string, pids: number[], podUid = UID): void {
  for (const pid of pids) writeCgroup(pid, `/kubepods/pod${podUid}/${container}`);
}

const range = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i);

test('all processes of a container have their turn, and each container its own limit', async () => {
  startIn(MAIN, range(100, 40));
  startIn(SIDECAR, [200]);
  startIn(MAIN, [300], UID.replace('0', '1'));
  writeCgroup(400, '/system.slice/sshd.service');
  const processes = new ContainerProcesses(proc);
  const seen = new Set<number>();
  for (let look = 0; look < 3; look++) {
    const some = (await processes.some(new Set([UID]))).map(({ pid }) => pid);
    expect(some).toContain(200);
    expect(some.length).toBeLessThanOrEqual(17);
    for (const pid of some) seen.add(pid);
  }
  expect([...seen].sort()).toEqual([...range(100, 40), 200]);
});

test('a pid that another container has now is not the same process', async () => {
  startIn(MAIN, [100, 101, 102]);
  const processes = new ContainerProcesses(proc);
  const some = await processes.some(new Set([UID]));
  startIn(SIDECAR, [101]);
  writeCgroup(102, '/');
  const still = await Promise.all(some.map((each) => processes.isStill(each)));
  expect(some.map(({ pid }, index) => [pid, still[index]])).toEqual([
    [100, true],
    [101, false],
    [102, false],
  ]);
});
