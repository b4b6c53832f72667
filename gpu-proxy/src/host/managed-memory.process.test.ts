import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import type { Allocation } from '../allocations/allocation.js';
import type { GpuNode } from '../node.js';
import { clientEnvironment } from '../run/run.js';
import { nodeCgroups, removeCgroup } from '../testing/node-cgroups.js';
import { type LogLine, launcherWithRooms, startNode } from '../testing/node-under-test.js';
import { RunningProgram } from '../testing/running-program.js';
import { locateInstallation } from './installation.js';

const MiB = 2 ** 20;
const UID = 20_100;
const isPossible = process.getuid?.() === 0 && existsSync('/dev/userfaultfd');
const withUserfaultfd = isPossible ? test : test.skip;

/** Says where managed memory is after work of the GPU with it, and whether its content is right. */
const MANAGED = `
start()
size, managed, copy = 3 * MiB, ctypes.c_uint64(), ctypes.c_uint64()
must("cuMemAllocManaged", ctypes.byref(managed), ctypes.c_size_t(size), 1)
must("cuMemAlloc_v2", ctypes.byref(copy), ctypes.c_size_t(size))
ctypes.memset(managed.value, 7, size)
must("cuMemcpyDtoD_v2", copy, managed, ctypes.c_size_t(size))
must("cuCtxSynchronize")
with open("/proc/self/pagemap", "rb") as pages:
    pages.seek(managed.value // 4096 * 8)
    present = int.from_bytes(pages.read(8), "little") >> 63
right = ctypes.string_at(managed.value, size) == b"\\x07" * size
say("with the program" if present else "on the GPU", right)
sys.stdin.readline()
`;

let directory: string;
let holder: ChildProcess;
let node: GpuNode;
let log: LogLine[];
let programs: RunningProgram[];

const cgroups = () => nodeCgroups(path.join(directory, 'unified'), path.basename(directory));

beforeEach(async () => {
  programs = [];
  directory = makePrivateDirectory();
  chmodSync(directory, 0o755);
  if (!isPossible) return;
  const unified = path.join(directory, 'unified');
  mkdirSync(unified);
  execFileSync('mount', ['-t', 'cgroup2', 'none', unified]);
  for (const cgroup of cgroups()) mkdirSync(cgroup);
  holder = await ownCgroups();
});
afterEach(async () => {
  for (const program of programs) program.kill();
  if (isPossible) {
    for (const allocation of node.allocations) await node.delete(allocation, { force: true });
    await node.close();
    holder.kill();
    await once(holder, 'exit');
    for (const cgroup of cgroups()) await removeCgroup(cgroup);
    execFileSync('umount', [path.join(directory, 'unified')]);
  }
  removePrivateDirectory(directory);
});

/**
 * A process whose mounts show these cgroups as those of the machine. Other tests start workers
 * beside this one, whose cgroup has another filter.
 */
async function ownCgroups(): Promise<ChildProcess> {
  const script = [
    'umount -a -t cgroup2',
    `mount -t cgroup2 none ${path.join(directory, 'unified')}`,
    ...cgroups().map((cgroup) => `mount --bind ${cgroup} ${path.dirname(cgroup)}`),
    'echo ready',
    'exec sleep infinity',
  ];
  const words = ['--mount', '/bin/sh', '-c', script.join('; ')];
  const started = spawn('unshare', words, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(started.stdout, 'data');
  return started;
}

async function start(movesManaged: boolean, warm = 0): Promise<void> {
  const state = path.join(directory, 'state');
  const mounts = `/proc/${holder.pid}/ns/mnt`;
  const namespaces = { mounts, cgroups: '/proc/self/ns/cgroup', root: '/' };
  const users = { first: UID, last: UID + 9 };
  const settings = { movesManaged, users, warmWorkers: () => warm };
  const launcher = launcherWithRooms(state, namespaces);
  ({ node, log } = await startNode(state, { settings, launcher }));
}

/** What a new program says, and how its worker was started. */
async function outcome(allocation: Allocation): Promise<string> {
  const env = clientEnvironment(locateInstallation(), allocation.socketPath);
  const program = new RunningProgram(MANAGED, env);
  programs.push(program);
  const said = await program.line();
  const session = allocation.sessions.find(({ session: { record } }) => {
    return record.client.pid === program.pid;
  });
  return `${said}, ${session?.workerStart}`;
}

const isWarm = () => until(() => node.left(node.gpus[0] as never).warmWorkersReady === 1);

withUserfaultfd('managed memory of a program whose worker has a room moves', async () => {
  await start(true);
  const allocation = await node.create({ gpus: ['0'], memory: 256 * MiB });
  expect(await outcome(allocation)).toBe('on the GPU True, cold');
});

withUserfaultfd(
  'so does that of a program with a warm worker, while the option is on',
  async () => {
    await start(false, 1);
    const allocation = await node.create({ gpus: ['0'], memory: 256 * MiB });
    await isWarm();
    expect(await outcome(allocation)).toBe('with the program True, warm');
    for (const [movesManaged, place] of [
      [true, 'on the GPU'],
      [false, 'with the program'],
    ] as const) {
      await isWarm();
      node.settings = { ...node.settings, movesManaged };
      await isWarm();
      expect(await outcome(allocation)).toBe(`${place} True, warm`);
    }
    expect(log.filter(({ msg }) => String(msg).includes('userfaultfd'))).toEqual([]);
  },
);
