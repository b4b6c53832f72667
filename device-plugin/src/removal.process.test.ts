import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { identifyProcess } from '@nvidia-virtual/service/process-table';
import { removeFromNode } from './removal.js';

let root: string;
let directory: string;
let sockets: string;
let started: ChildProcess[];

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'removal-'));
  directory = path.join(root, 'nvidia-virtual');
  sockets = path.join(root, 'kubelet', 'device-plugins');
  mkdirSync(path.join(directory, 'versions', 'one'), { recursive: true });
  mkdirSync(path.join(directory, 'state', 'allocations', 'a'), { recursive: true });
  mkdirSync(sockets, { recursive: true });
  started = [];
});

afterEach(() => {
  for (const child of started) child.kill('SIGKILL');
  rmSync(root, { recursive: true, force: true });
});

const remove = (patience = 10_000) =>
  removeFromNode({
    host: '/',
    directory,
    kubeletRoot: path.join(root, 'kubelet'),
    cgroup: path.basename(root),
    patience,
  });

function start(program: string, environment: Record<string, string> = {}): ChildProcess {
  const child = spawn(program, ['1000'], { env: environment, stdio: 'ignore' });
  started.push(child);
  return child;
}

test('removeFromNode() ends our processes and removes our files, nothing else', async () => {
  const worker = path.join(directory, 'versions', 'one', 'worker');
  copyFileSync('/bin/sleep', worker);
  const [ours, mps, other] = [
    start(worker),
    start('/bin/sleep', { CUDA_MPS_PIPE_DIRECTORY: `${directory}/state/mps` }),
    start('/bin/sleep'),
  ];
  writeFileSync(path.join(sockets, 'nvidia-virtual-0123abcd.sock'), '');
  writeFileSync(path.join(sockets, 'other.sock'), '');
  const ends = [ours, mps].map((child) => once(child as ChildProcess, 'exit'));
  await remove();
  expect((await Promise.all(ends)).map(([, signal]) => signal)).toEqual(['SIGKILL', 'SIGKILL']);
  expect(other?.exitCode).toBeNull();
  expect(existsSync(directory)).toBe(false);
  expect(readdirSync(sockets)).toEqual(['other.sock']);
});

/**
 * Cgroup hierarchies in which this machine lets the test create cgroups. Tests that run beside this
 * one have others for a while.
 */
const hierarchies = readFileSync('/proc/self/mounts', 'utf8')
  .split('\n')
  .map((line) => line.split(' '))
  .flatMap(([, point = '', type = '', options = '']) =>
    type.startsWith('cgroup') &&
    options.split(',').includes('rw') &&
    point.startsWith('/sys/fs/cgroup')
      ? point
      : [],
  );

(process.getuid?.() === 0 && hierarchies.length > 0 ? test : test.skip)(
  'removeFromNode() removes the cgroups of workers',
  async () => {
    const made = hierarchies.flatMap((point) =>
      ['', '-workers', '-services'].map((part) => path.join(point, path.basename(root) + part)),
    );
    for (const cgroup of made) mkdirSync(cgroup, { recursive: true });
    await remove();
    expect(made.filter((cgroup) => existsSync(cgroup))).toEqual([]);
  },
);

(process.getuid?.() === 0 && hierarchies.length > 0 ? test : test.skip)(
  'removeFromNode() names the process that keeps a cgroup',
  async () => {
    const cgroup = path.join(hierarchies[0] as string, path.basename(root));
    mkdirSync(cgroup);
    const orphan = spawn('/bin/sh', ['-c', 'read line', '\x1b[2J\n'.repeat(1000)]);
    const ended = once(orphan, 'exit');
    try {
      writeFileSync(path.join(cgroup, 'cgroup.procs'), `${orphan.pid}`);
      await expect(remove(300)).rejects.toThrow(
        `The cgroup ${cgroup} cannot be removed, because it contains ` +
          `process ${orphan.pid} (/bin/sh -c read line ?[2J??[2J?`,
      );
    } finally {
      orphan.kill('SIGKILL');
      await ended;
    }
    await remove();
    expect(existsSync(cgroup)).toBe(false);
  },
);

(process.getuid?.() === 0 ? test : test.skip)(
  'removeFromNode() leaves a process in a container, whatever it looks like',
  async () => {
    const variable = `CUDA_MPS_PIPE_DIRECTORY=${directory}/state/mps`;
    const inside = `env ${variable} sh -c 'echo ready; sleep 1000; :'`;
    const container = spawn('unshare', ['--pid', '--fork', '--kill-child', 'sh', '-c', inside]);
    started.push(container);
    await once(container.stdout, 'data');
    await remove();
    expect(container.exitCode).toBeNull();
  },
);

test('removeFromNode() succeeds if there is nothing to remove', async () => {
  rmSync(directory, { recursive: true });
  await remove();
});

test('removeFromNode() changes nothing while gpu-proxy serves', async () => {
  writeFileSync(
    path.join(directory, 'state', 'lock'),
    `${process.pid} ${identifyProcess(process.pid).startTime}\n`,
  );
  await expect(remove(300)).rejects.toThrow(`gpu-proxy, process ${process.pid},`);
  expect(existsSync(directory)).toBe(true);
});

test('removeFromNode() changes nothing while a device plugin serves', async () => {
  const server = createServer().listen(path.join(sockets, 'nvidia-virtual-0123abcd.sock'));
  await once(server, 'listening');
  await expect(remove(300)).rejects.toThrow('the device plugin at nvidia-virtual-0123abcd.sock');
  server.close();
  expect(existsSync(directory)).toBe(true);
});
