import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { jest } from '@jest/globals';
import type { CheckpointRecord } from '@nvidia-virtual/ledger';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import {
  identifyProcess,
  isAlive,
  type ProcessIdentity,
} from '@nvidia-virtual/service/process-table';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import type { Allocation } from '../allocations/allocation.js';
import { AllocationDirectory } from '../allocations/allocation-directory.js';
import type { NodeMemory } from '../arenas/node-memory.js';
import { DIRECT, type Launcher } from '../host/launcher.js';
import type { GpuNode } from '../node.js';
import type { NodeSettings } from '../node-types.js';
import { LiveSession } from '../sessions/live-session.js';
import { allBegun } from '../testing/begun.js';
import { withCriu } from '../testing/criu.js';
import { MovingProgram } from '../testing/moving-program.js';
import { startNode } from '../testing/node-under-test.js';
import { Criu } from './criu.js';
import { findKeepers } from './keeper.js';
import { KEY_BYTES, SealedWriter } from './sealed-file.js';
import { Staging } from './staging.js';

const MiB = 2 ** 20;
const QUOTA = 256 * MiB;

let directory: string;
let node: GpuNode;
let programs: MovingProgram[];
let files: string;

beforeEach(async () => {
  programs = [];
  directory = makePrivateDirectory();
  files = path.join(directory, 'checkpoint');
  await restart();
});
afterEach(async () => {
  for (const program of programs) program.kill();
  for (const allocation of node.allocations) await node.delete(allocation, { force: true });
  await node.close();
  removePrivateDirectory(directory);
});

async function start(
  allocation: Allocation,
  size = 8 * MiB,
  before: readonly string[] = [],
): Promise<MovingProgram> {
  const program = await MovingProgram.start(allocation.socketPath, size, { before });
  programs.push(program);
  await allBegun(allocation);
  return program;
}

async function restart(
  settings: Partial<NodeSettings> = {},
  launcher: Launcher = DIRECT,
  nodeMemory?: () => NodeMemory,
): Promise<void> {
  ({ node } = await startNode(path.join(directory, 'state'), {
    ...{ settings: { hostMemory: 1024 * MiB, ...settings }, launcher, nodeMemory },
  }));
}

/** Changes a file while no gpu-proxy runs. */
async function edit(file: string, from: string, to: string, launcher?: Launcher): Promise<void> {
  await node.leave();
  const text = readFileSync(file, 'utf8');
  expect(text).toContain(from);
  writeFileSync(file, text.replace(from, to));
  await restart({}, launcher);
}

withCriu('programs go on from files, after a restart of gpu-proxy', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const [first, second] = [await start(allocation), await start(allocation, 100_000)];
  const seen = await first.check();
  const workers = allocation.sessions.map(({ workerPid }) => identifyProcess(workerPid));
  for (const program of programs) program.ask(); // under way meanwhile
  await node.checkpoint(allocation, files);
  await until(() => !workers.some(isAlive));
  const { outBytes } = allocation;
  expect(allocation.state).toBe('out');
  expect(outBytes).toBeGreaterThan(8 * MiB);
  await until(() => node.arenas.used === 0);
  expect(statSync(files).mode & 0o777).toBe(0o700);
  expect(readdirSync(files).length).toBe(2);

  await node.leave();
  await restart();
  const found = node.find(allocation.id);
  expect([found.state, found.outBytes, found.sessions.length]).toEqual(['out', outBytes, 2]);
  await node.restore(found);
  expect(await first.right()).toBe(seen);
  await second.right();
  expect([found.state, existsSync(files)]).toEqual(['resident', false]);
  for (const program of programs) expect(await program.check()).toBe(seen);

  // All of it works again.
  await node.checkpoint(found, files);
  await node.restore(found);
  for (const program of programs) expect(await program.check()).toBe(seen);
});

withCriu('only the right key restores, and what is damaged or missing does not', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  const key = randomBytes(KEY_BYTES);
  await node.checkpoint(allocation, files, key);
  const file = path.join(files, readdirSync(files)[0] as string);
  const whole = readFileSync(file);
  expect(whole.includes('.visible .entry add')).toBe(false); // the program's code

  const refused = async (reason: string, given?: Buffer) =>
    expect(node.restore(allocation, given)).rejects.toMatchObject({
      code: 'CHECKPOINT_NOT_RESTORED',
      message: expect.stringContaining(reason),
    });
  await refused('the node does not have its key');
  await refused('the key is not the right one, or the file is damaged', Buffer.alloc(32));
  const damaged = Buffer.from(whole);
  damaged.writeUInt8(damaged.readUInt8(whole.length >> 1) ^ 1, whole.length >> 1);
  for (const wrong of [damaged, whole.subarray(0, -1), Buffer.concat([whole, whole])]) {
    writeFileSync(file, wrong);
    await refused('the file is damaged', key);
  }
  rmSync(file);
  await refused('no such file', key);
  symlinkSync('/etc/passwd', file);
  await refused('symbolic links', key);
  rmSync(file);
  await until(() => node.arenas.used === 0);
  const inFile = { code: 'ALLOCATION_IN_FILE' };
  await expect(node.resume(allocation)).rejects.toMatchObject(inFile);
  await expect(allocation.move('another')).rejects.toMatchObject(inFile);
  await expect(node.checkpoint(allocation, `${files}-2`)).rejects.toMatchObject({
    code: 'CHECKPOINT_REFUSED',
    message: expect.stringContaining('already'),
  });

  writeFileSync(file, whole);
  program.ask();
  await node.restore(allocation, key);
  await program.right();
});

withCriu('what cannot be written goes on as before', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  const refused = async (target: string, reason: string, key?: Buffer) => {
    await expect(node.checkpoint(allocation, target, key)).rejects.toMatchObject({
      code: 'CHECKPOINT_REFUSED',
      message: expect.stringContaining(reason),
    });
    await program.check();
    expect(allocation.specification.checkpoint).toBeUndefined();
    expect(allocation.state).toBe('resident');
  };
  await refused(directory, 'file already exists');
  expect(existsSync(directory)).toBe(true);
  await refused(files, 'its key does not have 32 bytes', Buffer.alloc(31));
  await refused(path.join(directory, 'missing', 'files'), 'no such file or directory');
  const shared = path.join(directory, 'shared');
  const beneath = path.join(shared, 'beneath');
  mkdirSync(beneath, { recursive: true });
  chmodSync(shared, 0o777);
  await refused(path.join(shared, 'files'), 'is not of root alone');
  await refused(path.join(beneath, 'files'), `${shared} is not of root alone`);
  const link = path.join(directory, 'link');
  symlinkSync('.', link);
  await refused(path.join(link, 'files'), `leads through a link: use ${directory}`);
  node.settings = { ...node.settings, hostMemory: 0 };
  await refused(files, 'hostMemory is 0');
});

withCriu('what a node lacks for a restoration is named', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  const worker = allocation.sessions[0]?.workerPid as number;
  await node.checkpoint(allocation, files);
  const { driver } = allocation.specification.checkpoint as CheckpointRecord;
  const specification = path.join(allocation.directory, 'allocation.json');
  const session = path.join(allocation.directory, 'sessions', '1', 'session.json');
  const refused = (reason: string) =>
    expect(node.restore(node.find(allocation.id))).rejects.toMatchObject({
      code: 'CHECKPOINT_NOT_RESTORED',
      message: expect.stringContaining(reason),
    });
  const [right, wrong] = [driver, '1.2'].map((each) => `"driver": "${each}"`) as [string, string];
  await edit(specification, right, wrong);
  await refused(`it was written with driver 1.2, and the node has ${driver}. Install 1.2`);
  const thread = Number(readdirSync('/proc/self/task').at(-1));
  expect(thread).not.toBe(process.pid);
  const [free, taken] = [worker, thread].map((pid) => `"parked":{"worker":{"pid":${pid},`) as [
    string,
    string,
  ];
  await edit(specification, wrong, right);
  await edit(session, free, taken);
  const owner = `process ${process.pid} (${process.execPath})`;
  await refused(`${owner} has the id ${thread} of a worker. End it`);
  const seen = (file: string) => (file.endsWith('/criu') ? '/none' : file);
  await edit(session, taken, free, { ...DIRECT, seen });
  await refused('CRIU is not installed on the node: install the package `criu`');
  await node.leave();
  await restart();
  await node.restore(node.find(allocation.id));
  await program.check();
});

/** Becomes a process with the id of its first argument. */
const WITH_ID = `
import ctypes, os, sys
wanted = ctypes.c_int(int(sys.argv[1]))
clone_args = (ctypes.c_uint64 * 10)(0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(wanted), 1)
if ctypes.CDLL(None).syscall(435, clone_args, ctypes.sizeof(clone_args)) == 0:
    print("ready", flush=True)
sys.stdin.read()
`;

withCriu('a process that has the id of a thread is named, and ends nothing', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  const worker = allocation.sessions[0]?.workerPid as number;
  const threads = () => readdirSync(`/proc/${worker}/task`).sort();
  const before = threads();
  const id = before.find((thread) => thread !== String(worker)) as string;
  await node.checkpoint(allocation, files);
  await until(() => !existsSync(`/proc/${worker}`));
  const other = spawn('python3', ['-c', WITH_ID, id]);
  try {
    await once(other.stdout, 'data');
    program.ask();
    await expect(node.restore(allocation)).rejects.toMatchObject({
      code: 'CHECKPOINT_NOT_RESTORED',
      message: expect.stringMatching(`process ${id} \\(.*python.*\\) has the id ${id} of a worker`),
    });
    expect(existsSync(`/proc/${worker}`)).toBe(false);
  } finally {
    other.stdin.end();
    await once(other, 'close');
  }
  await node.restore(allocation);
  expect(threads()).toEqual(expect.arrayContaining(before));
  await program.right();
});

withCriu('arenas from files have the limit of the allocation', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation, 80 * MiB);
  await node.checkpoint(allocation, files);
  const specification = path.join(allocation.directory, 'allocation.json');
  const [right, less] = [QUOTA, MiB].map((each) => `"memory": ${each}`) as [string, string];
  await edit(specification, right, less);
  const restore = () => node.restore(node.find(allocation.id));
  await expect(restore()).rejects.toMatchObject({ code: 'ARENAS_KEPT' });
  await edit(specification, less, right);
  await restore();
  await program.check();
});

withCriu('a program with a warm worker goes on from a file', async () => {
  await node.close();
  await restart({ warmWorkers: () => 1 });
  const [gpu] = node.gpus as [(typeof node.gpus)[0]];
  await until(() => node.left(gpu).warmWorkersReady === 1);
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  expect(allocation.sessions[0]?.workerStart).toBe('warm');
  await node.checkpoint(allocation, files);
  await node.restore(allocation);
  await program.check();
});

withCriu('each arena of a program comes back in its own place', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  // Its worker has the other layout then, in which later arenas have lower addresses.
  const program = await start(allocation, 8 * MiB, ['setarch', '-L']);
  for (let files = 1; files <= 3; files++) {
    if (files > 1) await program.grow();
    await allocation.evict(Number.POSITIVE_INFINITY);
    expect(allocation.sessions[0]?.arena.handles.length).toBe(files);
    await allocation.unsuspend('policy');
  }
  for (let i = 0; i < 2; i++) {
    await node.checkpoint(allocation, files);
    expect(allocation.outBytes).toBeGreaterThan(24 * MiB);
    await node.restore(allocation);
    await program.check();
  }
});

withCriu('a suspended allocation stays suspended', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  await node.suspend(allocation);
  const { outBytes } = allocation;
  await node.checkpoint(allocation, files);
  program.ask();
  await node.restore(allocation);
  expect([allocation.state, allocation.outBytes]).toEqual(['out', outBytes]);
  await node.resume(allocation);
  await program.right();
});

withCriu('a session ends with its program, and with a forced deletion', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const [first, second] = [await start(allocation), await start(allocation)];
  await node.checkpoint(allocation, files);
  const [, live] = allocation.sessions;
  first.kill();
  await until(() => allocation.sessions.length === 1);
  expect(allocation.sessions[0]).toBe(live);
  await node.restore(allocation);
  await second.check();
  await node.checkpoint(allocation, files);
  await node.delete(allocation, { force: true });
  expect([node.allocations, existsSync(files)]).toEqual([[], false]);
  second.ask();
  await expect(second.right()).rejects.toThrow();
});

/** With a state directory of its own disk. */
async function onDisk(mebibytes: number, body: (disk: string) => Promise<void>): Promise<void> {
  await node.close();
  const disk = path.join(directory, 'state');
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', disk]);
  try {
    await restart();
    await body(disk);
    for (const allocation of node.allocations) await node.delete(allocation, { force: true });
    await node.close();
  } finally {
    execFileSync('umount', ['--lazy', disk]);
  }
  await restart();
}

withCriu('files that would fill the disk are not written', () =>
  onDisk(20, async (disk) => {
    const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
    const program = await start(allocation, 32 * MiB);
    const target = path.join(disk, 'files');
    await expect(node.checkpoint(allocation, target)).rejects.toMatchObject({
      code: 'CHECKPOINT_REFUSED',
      message: expect.stringMatching(/has room for .*, without 1 MiB that stay free, not .* MiB/),
    });
    expect([allocation.state, existsSync(target)]).toEqual(['resident', false]);
    await program.check();
  }),
);

withCriu('a disk that gets full changes nothing', () =>
  onDisk(400, async (disk) => {
    const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
    const program = await start(allocation, 32 * MiB);
    const target = path.join(disk, 'files');
    const { finish } = SealedWriter.prototype;
    const filler = path.join(disk, 'filler');
    jest.spyOn(SealedWriter.prototype, 'finish').mockImplementationOnce(function (
      this: SealedWriter,
    ) {
      const { bavail, bsize } = statfsSync(disk);
      writeFileSync(filler, Buffer.alloc(bavail * bsize));
      return finish.call(this);
    });
    await expect(node.checkpoint(allocation, target)).rejects.toMatchObject({
      code: 'CHECKPOINT_REFUSED',
      message: expect.stringMatching(/no space left on device.*programs go on as before\.$/),
    });
    jest.restoreAllMocks();
    rmSync(filler);
    expect([allocation.state, existsSync(target)]).toEqual(['resident', false]);
    await program.check();
  }),
);

withCriu('files of CRIU take no memory that the node needs', async () => {
  await node.close();
  let available = 150 * MiB;
  await restart({}, DIRECT, () => ({ total: 1000 * MiB, available }));
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  const dump = jest.spyOn(Criu.prototype, 'dump');
  const low = (left: number) =>
    expect.stringContaining(`host memory, and ${left} MiB are available on the node, of which 50`);
  await expect(node.checkpoint(allocation, files)).rejects.toMatchObject({
    code: 'CHECKPOINT_REFUSED',
    message: low(150),
  });
  expect([dump.mock.calls.length, existsSync(files)]).toEqual([0, false]);
  await program.check();
  available = 1000 * MiB;
  await node.checkpoint(allocation, files);
  available = 60 * MiB;
  const code = 'CHECKPOINT_NOT_RESTORED';
  await expect(node.restore(allocation)).rejects.toMatchObject({ code, message: low(60) });
  available = 1000 * MiB;
  await node.restore(allocation);
  await program.check();
});

withCriu('a worker that gets larger while it is written is not written', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  const { dump } = Criu.prototype;
  let bytes = 0;
  jest.spyOn(Criu.prototype, 'dump').mockImplementationOnce(async function (this: Criu, pid, task) {
    // In the place of its further pages.
    const { bavail, bsize } = statfsSync(task.directory);
    bytes = bavail * bsize;
    writeFileSync(path.join(task.directory, 'pages'), Buffer.alloc(bytes - MiB / 16));
    await dump.call(this, pid, task);
  });
  await expect(node.checkpoint(allocation, files)).rejects.toMatchObject({
    code: 'CHECKPOINT_REFUSED',
    message: expect.stringMatching(
      /its worker \d+ has more memory than the .* MiB that the kernel/,
    ),
  });
  jest.restoreAllMocks();
  expect(bytes).toBeLessThan(300 * MiB);
  expect(existsSync(files)).toBe(false);
  await program.check();
});

withCriu('of several programs, the files of one are in memory at a time', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const [first, second] = [await start(allocation), await start(allocation)];
  const workers = allocation.sessions.map(({ workerPid }) => workerPid);
  await node.checkpoint(allocation, files);
  const made = jest.spyOn(Staging, 'make');
  const closed = jest.spyOn(Staging.prototype, 'close');
  const last = path.join(files, readdirSync(files).sort().at(-1) as string);
  const whole = readFileSync(last);
  writeFileSync(last, whole.subarray(0, -1));
  await expect(node.restore(allocation)).rejects.toThrow('the file is damaged');
  await until(() => !workers.some((pid) => existsSync(`/proc/${pid}`)));
  writeFileSync(last, whole);
  for (const program of programs) program.ask();
  await node.restore(allocation);
  const order = (mock: { mock: { invocationCallOrder: number[] } }) =>
    mock.mock.invocationCallOrder;
  const calls = order(made).flatMap((call, index) => [call, order(closed)[index] as number]);
  expect(calls.length).toBe(8);
  expect(calls).toEqual([...calls].sort((one, other) => one - other));
  jest.restoreAllMocks();
  await first.right();
  await second.right();
});

withCriu('an allocation whose programs have ended needs neither key nor file', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  await node.checkpoint(allocation, files, randomBytes(KEY_BYTES));
  program.kill();
  await until(() => allocation.sessions.length === 0);
  await node.restore(allocation);
  expect([allocation.state, existsSync(files)]).toEqual(['resident', false]);
  await (await start(allocation)).check();
});

withCriu('no kill leaves an allocation suspended without a checkpoint', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  await start(allocation);
  const save = jest.spyOn(AllocationDirectory.prototype, 'save');
  await node.checkpoint(allocation, files);
  await node.restore(allocation);
  jest.spyOn(SealedWriter, 'create').mockRejectedValueOnce(new Error('no space'));
  await expect(node.checkpoint(allocation, files)).rejects.toThrow('no space');
  const saved = save.mock.calls.map(([{ suspended, checkpoint }]) => [
    suspended,
    checkpoint?.stage,
  ]);
  jest.restoreAllMocks();
  expect(saved).toEqual([
    [true, 'writing'],
    [true, 'file'],
    [true, 'writing'],
    [undefined, undefined],
    [true, 'writing'],
    [undefined, undefined],
  ]);
});

withCriu('of two checkpoints at once, one is refused', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  const targets = [files, `${files}-2`];
  const both = targets.map((target) => node.checkpoint(allocation, target));
  const outcomes = await Promise.allSettled(both);
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  expect(targets.filter((target) => existsSync(target)).length).toBe(1);
  await node.restore(allocation);
  await program.check();
});

withCriu('a worker that ends while it is written ends only its session', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const [, second] = [await start(allocation), await start(allocation)];
  const worker = allocation.sessions[0]?.workerPid as number;
  jest.spyOn(SealedWriter, 'create').mockImplementationOnce(async () => {
    process.kill(worker, 'SIGKILL');
    throw new Error('no space');
  });
  await expect(node.checkpoint(allocation, files)).rejects.toThrow('no space');
  jest.restoreAllMocks();
  await until(() => allocation.sessions.length === 1);
  expect(allocation.specification.checkpoint).toBeUndefined();
  await second.check();
});

withCriu('what the policy of a GPU suspends, only the policy resumes', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  await allocation.evict(Number.POSITIVE_INFINITY);
  await expect(node.checkpoint(allocation, directory)).rejects.toThrow('file already exists');
  expect(allocation.specification.suspendedBy).toEqual(['policy']);
  await node.checkpoint(allocation, files);
  await node.restore(allocation);
  expect(allocation.specification.suspendedBy).toEqual(['policy']);
  await allocation.unsuspend('policy');
  await program.check();
});

withCriu('a process that was made from a file ends with its session', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  const [live] = allocation.sessions as [LiveSession];
  const made = spawn('sleep', ['1000'], { stdio: 'ignore' });
  const { pid, startTime = '' } = identifyProcess(made.pid as number);
  const { record } = live.session;
  const restored = { pid, startTime };
  live.saveRecord({ ...record, parked: { worker: record.worker, restored } });
  program.kill();
  await once(made, 'exit');
});

withCriu('a keeper of unknown pid ends', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  const [{ workerPid, keeperSocket }] = allocation.sessions as [LiveSession];
  const { saveRecord } = LiveSession.prototype;
  let found: ProcessIdentity[] = [];
  jest.spyOn(LiveSession.prototype, 'saveRecord').mockImplementation(function (
    this: LiveSession,
    record,
  ) {
    if (!record.parked?.keeper) return saveRecord.call(this, record);
    found = findKeepers(workerPid, keeperSocket);
    throw new Error('no space');
  });
  await expect(node.checkpoint(allocation, files)).rejects.toThrow('no space');
  jest.restoreAllMocks();
  expect(found.length).toBe(1);
  await until(() => !found.some(isAlive));
  await program.check();
});

withCriu('a process that is made while its client ends, ends as well', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const [first, second] = [await start(allocation), await start(allocation)];
  const [live] = allocation.sessions as [LiveSession];
  const { pid } = live.session.record.worker;
  await node.checkpoint(allocation, files);
  const { restore } = Criu.prototype;
  jest.spyOn(Criu.prototype, 'restore').mockImplementationOnce(async function (this: Criu, task) {
    await restore.call(this, task);
    first.kill();
    await until(() => live.over);
  });
  await node.restore(allocation);
  jest.restoreAllMocks();
  await until(() => !existsSync(`/proc/${pid}`));
  await second.check();
});

// The pid of a worker in a file is free for others.
withCriu('a worker that is just being written is no stray of another session', async () => {
  const [first, second] = [
    await node.create({ gpus: ['0'], memory: QUOTA }),
    await node.create({ gpus: ['0'], memory: QUOTA }),
  ];
  const [waiting, writing] = [await start(first), await start(second)];
  await node.checkpoint(first, files);
  const [file] = readdirSync(files).map((name) => path.join(files, name)) as [string];
  const whole = readFileSync(file);
  const [live] = first.sessions as [LiveSession];
  const { record } = live.session;
  const pid = second.sessions[0]?.workerPid as number;
  const { create } = SealedWriter;
  jest.spyOn(SealedWriter, 'create').mockImplementationOnce(async (...words) => {
    live.saveRecord({ ...record, parked: { ...record.parked, worker: { pid, startTime: '1' } } });
    writeFileSync(file, whole.subarray(0, -1));
    await expect(node.restore(first)).rejects.toThrow('the file is damaged');
    expect(second.sessions.length).toBe(1);
    return create(...words);
  });
  await node.checkpoint(second, `${files}-2`);
  jest.restoreAllMocks();
  await node.restore(second);
  await writing.check();
  live.saveRecord(record);
  writeFileSync(file, whole);
  await node.restore(first);
  await waiting.check();
});

withCriu('a killed keeper ends only its session', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const [, second] = [await start(allocation), await start(allocation)];
  await node.checkpoint(allocation, files);
  process.kill(allocation.sessions[0]?.workerPid as number, 'SIGKILL');
  await until(() => allocation.sessions.length === 1);
  await node.restore(allocation);
  await second.check();
});
