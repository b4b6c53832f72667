import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { jest } from '@jest/globals';
import type { SessionRecord } from '@nvidia-virtual/ledger';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { findProcess, isAlive } from '@nvidia-virtual/service/process-table';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import type { Allocation } from './allocations/allocation.js';
import { locateInstallation } from './host/installation.js';
import { DIRECT } from './host/launcher.js';
import type { GpuNode, NodeOptions } from './node.js';
import { clientEnvironment } from './run/run.js';
import type { LiveSession } from './sessions/live-session.js';
import { SessionFiles } from './sessions/session-files.js';
import { cudaProgram } from './testing/cuda-program.js';
import { type LogLine, startNode } from './testing/node-under-test.js';

const MiB = 2 ** 20;
const HOLDING =
  'start(); say("got", alloc(150 * MiB)); sys.stdin.readline(); say("then", alloc(50 * MiB))';

let directory: string;
let node: GpuNode;
let log: LogLine[];
const lines = new WeakMap<ChildProcessWithoutNullStreams, AsyncIterator<string>>();
let programs: ChildProcessWithoutNullStreams[];

beforeEach(async () => {
  programs = [];
  directory = makePrivateDirectory();
  await restart();
});
afterEach(async () => {
  for (const program of programs) program.kill('SIGKILL');
  for (const allocation of node.allocations) await node.delete(allocation, { force: true });
  await node.close();
  removePrivateDirectory(directory);
});

async function restart(options: Partial<NodeOptions> = {}): Promise<void> {
  ({ node, log } = await startNode(path.join(directory, 'state'), options));
}

function startProgram(
  allocation: Allocation,
  body: string,
  env: NodeJS.ProcessEnv = {},
): ChildProcessWithoutNullStreams {
  const [program, ...args] = cudaProgram(body);
  const child = spawn(program as string, args, {
    env: { ...clientEnvironment(locateInstallation(), allocation.socketPath), ...env },
  });
  programs.push(child);
  lines.set(child, createInterface(child.stdout)[Symbol.asyncIterator]());
  return child;
}

/** The next line of its output. */
async function line(program: ChildProcessWithoutNullStreams): Promise<string> {
  const next = await lines.get(program)?.next();
  return String(next?.value);
}

async function finish(program: ChildProcessWithoutNullStreams): Promise<string> {
  program.stdin.write('\n');
  const text = await line(program);
  if (program.exitCode === null) await once(program, 'exit');
  return text;
}

function sessionOf(allocation: Allocation, program: ChildProcessWithoutNullStreams): SessionRecord {
  return allocation.sessions
    .map(({ session }) => session.record)
    .find(({ client }) => client.pid === program.pid) as SessionRecord;
}

function openFiles(): string[] {
  const list = '/proc/self/fd';
  return readdirSync(list).map((fd) => {
    const file = path.join(list, fd);
    // The descriptor of the listing itself is closed by now.
    return lstatSync(file, { throwIfNoEntry: false }) ? readlinkSync(file) : '';
  });
}

function messages(text: string): LogLine[] {
  return log.filter(({ msg }) => msg === text);
}

test('two allocations at a time have separate accounts', async () => {
  const [first, second] = await Promise.all([
    node.create({ memory: 200 * MiB, name: 'first' }),
    node.create({ memory: 100 * MiB, share: 25, policy: 'fixed', priority: 5 }),
  ]);
  const [fits, tooMuch] = [startProgram(first, HOLDING), startProgram(second, HOLDING)];
  expect([await line(fits), await line(tooMuch)]).toEqual(['got 0', 'got 2']);
  const snapshot = node.snapshot();
  expect(snapshot.gpus).toHaveLength(1);
  expect(snapshot.allocations.map(({ sessions }) => sessions.map(({ use }) => use.memory))).toEqual(
    [[150 * MiB], [0]],
  );
  expect(snapshot.allocations[1]?.specification).toMatchObject({
    share: 25,
    policy: 'fixed',
    priority: 5,
    memory: 100 * MiB,
  });
  expect(snapshot.allocations[0]?.sessions[0]?.record.client).toMatchObject({
    pid: fits.pid,
    uid: process.getuid?.(),
  });
  expect([await finish(fits), await finish(tooMuch)]).toEqual(['then 0', 'then 0']);
  await Promise.all([first.whenIdle(), second.whenIdle()]);
  expect(messages('session').map(({ allocation, session }) => [allocation, session])).toEqual(
    expect.arrayContaining([
      [first.id, 1],
      [second.id, 1],
    ]),
  );
  expect([first.memoryUsed, first.peakMemory]).toEqual([0, 200 * MiB]);
  expect(readdirSync(path.join(first.directory, 'sessions'))).toEqual([]);
});

test('one of two processes gets the last MiB, and the other the numbers', async () => {
  const left = node.left(node.gpus[0] as never).memory;
  await node.create({ memory: left - MiB });
  const outcomes = await Promise.allSettled([
    node.create({ memory: MiB }),
    node.create({ memory: MiB }),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  const { reason } = outcomes[1] as PromiseRejectedResult;
  expect(reason.message).toMatch(
    /^GPU 0 \(GPU-.*\) has 0 bytes left for a quota, but 1 MiB was requested\. .* 2 allocations/,
  );
});

test('memory 0 means all free memory', async () => {
  const left = node.left(node.gpus[0] as never).memory;
  await node.create({ memory: 100 * MiB });
  expect((await node.create({})).specification.memory).toBe(left - 100 * MiB);
  await expect(node.create({})).rejects.toThrow(
    'has 0 bytes left for a quota, but all that is left was requested',
  );
});

test('sessions continue without a proxy, and the next proxy finds them', async () => {
  const allocation = await node.create({ memory: 400 * MiB });
  const [stays, leaves] = [startProgram(allocation, HOLDING), startProgram(allocation, HOLDING)];
  expect([await line(stays), await line(leaves)]).toEqual(['got 0', 'got 0']);
  const { worker } = sessionOf(allocation, leaves);
  node.leave();

  expect(await finish(leaves)).toBe('then 0');
  await until(() => !isAlive(worker));
  await restart();
  const again = node.find(allocation.id);
  while (again.sessionCount > 1) await once(node, 'changed');
  expect(messages('session')).toEqual([
    expect.objectContaining({ pid: leaves.pid, peakMemory: 200 * MiB, level: 30, launches: 0 }),
  ]);
  expect(again.memoryUsed).toBe(150 * MiB);

  const third = startProgram(again, HOLDING);
  expect(await line(third)).toBe('got 0');
  expect([await finish(stays), await finish(third)]).toEqual(['then 0', 'then 0']);
  await again.whenIdle();
  expect(again.memoryUsed).toBe(0);
  expect(messages('session').map(({ session }) => session)).toEqual(
    expect.arrayContaining([1, 2, 3]),
  );
});

const REFUSED =
  'start(); say("ready"); sys.stdin.readline(); say("refused", alloc(500 * MiB)); ' +
  'sys.stdin.readline()';

test('a refusal while no proxy runs is reported by the next proxy, and only by it', async () => {
  const allocation = await node.create({ memory: 400 * MiB });
  const program = startProgram(allocation, REFUSED);
  await line(program);
  node.leave();
  program.stdin.write('\n');
  expect(await line(program)).toBe('refused 2');

  const told: string[] = [];
  const observe: NodeOptions['observe'] = (made) =>
    made.on('trouble', (of, { message }) => told.push(of.id, message));
  await restart({ observe });
  const sentence =
    `Process ${program.pid} (${sessionOf(node.find(allocation.id), program).client.program}` +
    `) requested ` +
    `500 MiB of GPU memory`;
  expect(told).toEqual([allocation.id, expect.stringContaining(sentence)]);
  node.leave();
  await restart({ observe });
  expect(told).toHaveLength(2);
});

const TO_EVERY_LIMIT = `
import threading
start()
address, stream = ctypes.c_uint64(), ctypes.c_uint64()
say("pinned", result("cuMemHostAlloc", ctypes.byref(address), ctypes.c_size_t(5 * MiB), 0))
while result("cuStreamCreate", ctypes.byref(stream), 0) == 0: pass
say("streams")
sys.stdin.readline()
def use():
    say("threads", result("cuCtxSynchronize"))
thread = threading.Thread(target=use)
thread.start()
thread.join()
`;

test('the user of an allocation is told of every limit that a program reaches', async () => {
  const told: [string, string][] = [];
  node.on('trouble', (_, { code, message }) => told.push([code, message]));
  const allocation = await node.create({
    limits: { sessions: 1, pinnedMemory: 4 * MiB, handles: 32, threads: 1 },
  });
  const cudaLog = path.join(directory, 'cuda.log');
  const program = startProgram(allocation, TO_EVERY_LIMIT, { CUDA_LOG_FILE: cudaLog });
  expect([await line(program), await line(program)]).toEqual(['pinned 2', 'streams']);
  const second = startProgram(allocation, 'say("init", result("cuInit", 0))');
  expect(await line(second)).toBe('init 100');
  expect(readFileSync(cudaLog, 'utf8')).toMatch(
    /5 MiB of pinned host memory were asked for.*left of the 4 MiB.*there are 32 streams, events/s,
  );
  expect(await finish(program)).toBe('threads 46');
  await allocation.whenIdle();
  expect(Object.fromEntries(told)).toEqual({
    PINNED_MEMORY_REACHED: expect.stringContaining(
      'requested 5 MiB of pinned host memory and got CUDA_ERROR_OUT_OF_MEMORY',
    ),
    HANDLES_REACHED: expect.stringContaining('have 32 open handles'),
    SESSIONS_FULL: expect.stringContaining(`process ${second.pid} was refused: all 1 sessions`),
    THREADS_REACHED: expect.stringContaining('more than 1 threads of its allocation used CUDA'),
  });
});

test('what a killed proxy left incomplete and sessions that ended are removed', async () => {
  const allocation = await node.create({});
  const program = startProgram(allocation, HOLDING);
  await line(program);
  node.leave();
  const session = path.join(allocation.directory, 'sessions', '1', 'session.json');
  const record = JSON.parse(readFileSync(session, 'utf8'));
  // As if it had been killed right after it started the worker.
  writeFileSync(session, JSON.stringify({ ...record, worker: { pid: 0, startTime: '' } }));
  await restart();
  expect(node.find(allocation.id).sessions[0]?.session.record.worker).toEqual(record.worker);
  const restored = readFileSync(session, 'utf8');
  node.leave();

  program.kill('SIGKILL');
  await until(() => !isAlive(record.worker));
  writeFileSync(
    session,
    JSON.stringify({ ...JSON.parse(restored), worker: { pid: 0, startTime: '' } }),
  );
  await restart();
  expect(node.find(allocation.id).sessionCount).toBe(0);
  expect(readdirSync(path.join(allocation.directory, 'sessions'))).toEqual([]);
  expect(node.find(allocation.id).memoryUsed).toBe(0);
});

test('a session whose worker cannot start leaves nothing behind', async () => {
  const installation = { ...locateInstallation(), worker: '/nonexistent\0' };
  node.leave();
  await restart({ installation });
  const allocation = await node.create({});
  for (let i = 0; i < 3; i++)
    expect(await line(startProgram(allocation, 'say(result("cuInit", 0))'))).not.toBe('0');
  expect(
    log.filter(({ msg }) => String(msg).includes('could not be started')).length,
  ).toBeGreaterThanOrEqual(3);
  expect(readdirSync(path.join(allocation.directory, 'sessions'))).toEqual([]);
  expect(allocation.sessionCount).toBe(0);
  expect(openFiles().filter((file) => file.includes('/sessions/'))).toEqual([]);
});

test('a record without a worker gets no worker or slot of another session', async () => {
  const allocation = await node.create({});
  const program = startProgram(allocation, HOLDING);
  await line(program);
  const { worker } = sessionOf(allocation, program);
  node.leave();
  // As if earlier sessions had not started, and their slot had become free.
  const sessions = path.join(allocation.directory, 'sessions');
  const record = JSON.parse(readFileSync(path.join(sessions, '1', 'session.json'), 'utf8'));
  for (const [name, pid] of [
    ['0', 0],
    ['2', 0],
    ['00', 2 ** 22 + 1],
  ] as const) {
    SessionFiles.make(path.join(sessions, name), {
      ...record,
      number: Number(name),
      worker: { pid, startTime: '1' },
    });
  }
  await restart();
  const again = node.find(allocation.id);
  expect(again.sessions.map(({ session }) => session.record.worker)).toEqual([worker]);
  expect(readdirSync(sessions)).toEqual(['1']);
  expect(again.memoryUsed).toBe(150 * MiB);
  const other = startProgram(again, HOLDING);
  expect(await line(other)).toBe('got 0');
  expect(again.memoryUsed).toBe(300 * MiB);
  expect([await finish(program), await finish(other)]).toEqual(['then 0', 'then 0']);
});

test('the worker of a pod is placed again by the next gpu-proxy', async () => {
  const owner = { namespace: 'default', pod: 'found', podUid: '0-1', container: 'main' };
  const allocation = await node.create({ memory: 400 * MiB, owner });
  const program = startProgram(allocation, HOLDING);
  expect(await line(program)).toBe('got 0');
  const { worker } = sessionOf(allocation, program);
  node.leave();
  const moves: unknown[] = [];
  await restart({ launcher: { ...DIRECT, move: (...words) => moves.push(words) } });
  expect(moves).toEqual([[worker.pid, { podUid: '0-1', pid: program.pid }]]);
  expect(await finish(program)).toBe('then 0');
});

test('a specification of a later version is kept, and logged', async () => {
  const newer = await node.create({ memory: 100 * MiB });
  const { memory: left } = node.left(node.gpus[0] as never);
  const broken = await node.create({ memory: MiB });
  node.leave();
  const files = [newer, broken].map((allocation) =>
    path.join(allocation.directory, 'allocation.json'),
  );
  const texts = [JSON.stringify({ ...newer.specification, version: 2 }), '{'];
  for (const [i, file] of files.entries()) writeFileSync(file, texts[i] as string);
  await restart();
  expect(node.allocations).toEqual([]);
  expect(node.left(node.gpus[0] as never).memory).toBe(left);
  const said = log.map(({ msg }) => msg);
  expect(said).toContainEqual(
    expect.stringContaining(`${files[0]} has version 2, but this gpu-proxy supports 1.`),
  );
  expect(said).toContainEqual(
    expect.stringMatching(
      /Start the newer gpu-proxy again\. .* stays reserved until its directory is removed\.$/,
    ),
  );
  expect(said).toContainEqual(expect.stringContaining(`${files[1]} cannot be read`));
  expect(said).toContainEqual(
    expect.stringMatching(/remove the directory\. .* its quota cannot be read\.$/),
  );
  expect(files.map((file) => readFileSync(file, 'utf8'))).toEqual(texts);
  rmSync(newer.directory, { recursive: true });
  expect(node.left(node.gpus[0] as never).memory).toBe(
    left + 100 * MiB + (node.gpus[0]?.contextMemory ?? 0),
  );
});

test('a state directory has one proxy at a time', async () => {
  await expect(startNode(path.join(directory, 'state'))).rejects.toThrow(
    `process ${process.pid}, already serves the state directory`,
  );
});

test('drain refuses new sessions; the allocation goes with its last session', async () => {
  const allocation = await node.create({ name: 'tenant' });
  const program = startProgram(allocation, HOLDING);
  await line(program);
  node.drain(node.find('tenant'));
  const late = startProgram(allocation, 'say(result("cuInit", 0))');
  expect(await line(late)).toBe('100');
  expect(log).toContainEqual(
    expect.objectContaining({
      msg: expect.stringContaining(
        `process ${late.pid} was refused: allocation ${allocation.id} is being drained`,
      ),
    }),
  );
  node.leave();
  await restart();
  expect(node.find('tenant').specification.draining).toBe(true);
  expect(await finish(program)).toBe('then 0');
  while (node.allocations.length > 0) await once(node, 'changed');
  expect(existsSync(allocation.directory)).toBe(false);
});

test('delete is refused while sessions live, unless it may end them', async () => {
  const allocation = await node.create({});
  const program = startProgram(allocation, HOLDING);
  await line(program);
  await expect(node.delete(allocation, { force: false })).rejects.toThrow(
    `Allocation ${allocation.id} has 1 session and is not deleted.`,
  );
  await node.delete(allocation, { force: true });
  expect(node.allocations).toEqual([]);
  expect(existsSync(allocation.directory)).toBe(false);
  expect(await finish(program)).toBe('then 46');
});

test('allocations are found by id and by name', async () => {
  const [first, second] = [
    await node.create({ name: 'a', memory: MiB }),
    await node.create({ name: 'a', memory: MiB }),
  ];
  expect(node.find(first.id)).toBe(first);
  expect(() => node.find('a')).toThrow(`2 allocations have the name a: ${first.id}, ${second.id}.`);
  expect(() => node.find('b')).toThrow('No allocation has the id or name b.');
});

test('a warm worker is given to a program, and another one replaces it', async () => {
  node.leave();
  await restart({ settings: { warmWorkers: () => 1 } });
  const { uuid } = node.gpus[0] as { uuid: string };
  // Nodes of other tests have GPUs of the same UUIDs, but another state.
  const driver = ['--driver', locateInstallation().simulatedDriver];
  const simulated = ['--simulated-state', path.join(directory, 'state', 'simulated-gpus')];
  const warmWorker = () => findProcess('--warm', '--gpu', uuid, ...driver, ...simulated)?.pid;
  const allocation = await node.create({ memory: 300 * MiB });
  await until(() => node.left(node.gpus[0] as never).warmWorkersReady >= 1);
  const first = warmWorker();
  const program = startProgram(allocation, HOLDING);
  expect(await line(program)).toBe('got 0');
  const { worker } = sessionOf(allocation, program);
  expect(worker.pid).toBe(first);
  await until(() => node.left(node.gpus[0] as never).warmWorkersReady >= 1);
  node.leave();
  await restart();
  const again = node.find(allocation.id);
  expect(again.sessions[0]?.session.record.worker).toEqual(worker);
  expect([again.memoryUsed, await finish(program)]).toEqual([150 * MiB, 'then 0']);
  await again.whenIdle();
  await until(() => warmWorker() === undefined);
});

/** Connects when a warm worker is ready, and sends nothing. */
async function connectSilently(
  allocation: Allocation,
): Promise<{ client: Socket; session: LiveSession }> {
  await until(() => node.left(node.gpus[0] as never).warmWorkersReady >= 1);
  const before = allocation.sessions.length;
  const client = createConnection(allocation.socketPath);
  await until(() => allocation.sessions.length > before);
  return { client, session: allocation.sessions.at(-1) as LiveSession };
}

test('clients that send nothing take one warm worker, until a program begins', async () => {
  node.leave();
  await restart({ settings: { warmWorkers: () => 1 } });
  const allocation = await node.create({ memory: 300 * MiB });
  const first = await connectSilently(allocation);
  const { startedAt } = first.session.session.record;
  await until(() => Date.now() - Date.parse(startedAt) > 1000);
  const second = await connectSilently(allocation);
  for (const { client } of [first, second]) client.destroy();
  await allocation.whenIdle();
  const third = await connectSilently(allocation);
  third.client.destroy();
  await allocation.whenIdle();
  const program = startProgram(allocation, HOLDING);
  expect(await line(program)).toBe('got 0');
  await until(() => allocation.sessions.some(({ session }) => session.gpu));
  const fourth = await connectSilently(allocation);
  fourth.client.destroy();
  const starts = [first, second, third, fourth].map(({ session }) => session.workerStart);
  expect(starts).toEqual(['warm', 'cold', 'cold', 'warm']);
});

test('a program that begins before gpu-proxy lists its session has begun', async () => {
  node.leave();
  await restart({ settings: { warmWorkers: () => 1 } });
  const allocation = await node.create({ memory: 300 * MiB });
  const before = await connectSilently(allocation);
  expect(before.session.workerStart).toBe('warm');
  before.client.destroy();
  await allocation.whenIdle();
  const { follow } = SessionFiles.prototype;
  jest.spyOn(SessionFiles.prototype, 'follow').mockImplementationOnce(function (
    this: SessionFiles,
    listener,
  ) {
    const report = path.join(path.dirname(this.figures), 'report');
    while (readFileSync(report).length === 0);
    follow.call(this, listener);
  });
  const program = startProgram(allocation, HOLDING);
  expect(await line(program)).toBe('got 0');
  const after = await connectSilently(allocation);
  after.client.destroy();
  expect(after.session.workerStart).toBe('warm');
});

test('the memory of warm workers is not granted to allocations', async () => {
  const gpus = node.gpus.map((gpu) => ({ ...gpu, contextMemory: 100 * MiB }));
  node.leave();
  await restart({ gpus, settings: { warmWorkers: () => 2 } });
  await expect(node.create({ memory: node.gpus[0]?.memory as number })).rejects.toThrow(
    '100 MiB are for CUDA contexts including the new one, and 200 MiB for warm workers',
  );
  const before = node.settings;
  expect(() => {
    node.settings = { ...before, warmWorkers: () => 100 };
  }).toThrow(
    'has no room for 100 warm workers, which need 9.8 GiB: of its 8 GiB, 0 bytes are reserved ' +
      'for 0 allocations.',
  );
  const { specification } = await node.create({});
  expect(specification.memory).toBe((node.gpus[0]?.memory as number) - 300 * MiB);
});

test('a client that opens unlimited connections does not block others', async () => {
  const [hostile, other] = [
    await node.create({ memory: MiB, limits: { sessions: 40 } }),
    await node.create({ memory: 300 * MiB }),
  ];
  const flood = `
import socket, sys
connections = []
for i in range(1000):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    connections.append(connection)
print("flooded", flush=True)
sys.stdin.readline()`;
  const attacker = spawn('python3', ['-c', flood, hostile.socketPath]);
  programs.push(attacker);
  lines.set(attacker, createInterface(attacker.stdout)[Symbol.asyncIterator]());
  expect(await line(attacker)).toBe('flooded');
  const program = startProgram(other, HOLDING);
  expect(await line(program)).toBe('got 0');
  expect(await finish(program)).toBe('then 0');
  expect(hostile.sessionCount).toBe(40);
  expect(hostile.sessions.length).toBeLessThanOrEqual(16);
  attacker.stdin.write('\n');
  await hostile.whenIdle();
  const refused = log.filter(({ msg }) => String(msg).includes('all 40 sessions'));
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.length).toBeLessThan(100);
});

test.each([
  [{ share: 0 }, 'share is 0, but must be a whole number of percent, 1 to 100.'],
  [{ priority: 101 }, 'priority is 101, but must be'],
  [{ name: 'a b' }, 'name is "a b", but must be'],
  [{ limits: { sessions: 1000 } }, 'limits.sessions is 1000, but must be 1 to 240.'],
  [{ gpus: ['7'] }, 'GPU 7 does not exist here. The GPUs are: 0 (GPU-'],
  [{ mode: 'concurrent' as const }, 'is in exclusive mode, but concurrent was requested'],
])('%j is refused', async (request, sentence) => {
  await expect(node.create({ memory: MiB, gpus: ['0'], ...request })).rejects.toThrow(sentence);
});
