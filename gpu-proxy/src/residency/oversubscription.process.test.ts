import { existsSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import type { Allocation } from '../allocations/allocation.js';
import { locateInstallation } from '../host/installation.js';
import { DIRECT, type Launcher } from '../host/launcher.js';
import type { GpuNode, NodeOptions } from '../node.js';
import { clientEnvironment } from '../run/run.js';
import { type LogLine, startNode } from '../testing/node-under-test.js';
import { RunningProgram } from '../testing/running-program.js';

const MiB = 2 ** 20;
/** 60 % of the simulated GPU. */
const QUOTA = 300 * MiB;
/** Its GPU is small, so that programs fill it soon. */
const launcher: Launcher = {
  ...DIRECT,
  command: (file, args) => ['env', ['NVIDIA_VIRTUAL_SIMULATED_MEMORY=512MiB', file, ...args]],
};
const EVICTED = 'allocation has left the GPU for others';

/**
 * Fills memory with random bytes, then copies it on the GPU from piece to piece and compares, until
 * it is told to end. Two such programs have more memory than the GPU.
 */
const CHECKING = `
start()
import hashlib, random, select
size = 64 * MiB
pieces = [ctypes.c_uint64() for _ in range(4)]
for piece in pieces: must("cuMemAlloc_v2", ctypes.byref(piece), ctypes.c_size_t(size))
content = os.urandom(size)
must("cuMemcpyHtoD_v2", pieces[0], content, ctypes.c_size_t(size))
back = ctypes.create_string_buffer(size)
say("ready")
rounds = 0
while rounds == 0 or not select.select([sys.stdin], [], [], 0)[0]:
    for source, target in zip(pieces, pieces[1:]):
        must("cuMemcpyDtoD_v2", target, source, ctypes.c_size_t(size))
    must("cuMemcpyDtoH_v2", back, pieces[-1], ctypes.c_size_t(size))
    if back.raw != content: sys.exit("wrong bytes")
    for piece in pieces[1:]: must("cuMemsetD8_v2", piece, ctypes.c_ubyte(0), ctypes.c_size_t(size))
    rounds += 1
say("right")
`;

let directory: string;
let node: GpuNode;
let log: LogLine[];
let programs: RunningProgram[];

beforeEach(async () => {
  programs = [];
  directory = makePrivateDirectory();
  await start();
});
afterEach(async () => {
  for (const program of programs) program.kill();
  for (const allocation of node.allocations) await node.delete(allocation, { force: true });
  await node.close();
  removePrivateDirectory(directory);
});

async function start(options: Partial<NodeOptions> = {}): Promise<void> {
  ({ node, log } = await startNode(path.join(directory, 'state'), {
    ...{ arbitrated: true, launcher },
    settings: { oversubscription: () => 2, hostMemory: 4 * QUOTA },
    ...options,
  }));
}

async function run(allocation: Allocation, body: string): Promise<RunningProgram> {
  const environment = clientEnvironment(locateInstallation(), allocation.socketPath);
  const program = new RunningProgram(body, environment);
  programs.push(program);
  return program;
}

/** Ends programs that check their bytes, which were right. */
async function endAll(checking: readonly RunningProgram[]): Promise<void> {
  for (const program of checking) program.tell('end');
  for (const program of checking)
    expect([await program.line(), await program.line()]).toEqual(['ready', 'right']);
}

const times = (message: string, allocation: Allocation) =>
  log.filter(({ msg, allocation: id }) => msg === message && id === allocation.id).length;

test('tenants of more memory than the GPU has take turns, and every byte is right', async () => {
  const allocations = await Promise.all(
    ['a', 'b', 'c'].map((name) => node.create({ name, memory: QUOTA })),
  );
  const checking = await Promise.all(allocations.map((one) => run(one, CHECKING)));
  await until(() => allocations.every((one) => times(EVICTED, one) >= 2));
  await endAll(checking);
});

test('a command takes an allocation from the turns, and the next gpu-proxy goes on', async () => {
  const [a, b] = [await node.create({ memory: QUOTA }), await node.create({ memory: QUOTA })];
  const [first, second] = [await run(a, CHECKING), await run(b, CHECKING)];
  await until(() => times(EVICTED, a) > 0 && times(EVICTED, b) > 0);
  await node.suspend(a);
  expect([a.state, a.suspended]).toEqual(['out', true]);
  await until(() => b.state === 'resident' && !b.evicted);
  await node.resume(a);
  expect([a.suspended, a.evicted]).toEqual([false, true]);
  await until(() => a.state === 'resident' && !a.evicted && b.state === 'out');
  node.leave();

  await start();
  const [anew, other] = [node.find(a.id), node.find(b.id)];
  expect([anew.state, other.state, other.evicted]).toEqual(['resident', 'out', true]);
  await until(() => other.state === 'resident');
  // Without oversubscription, the one that is out comes back all the same.
  await until(() => anew.state === 'out');
  node.leave();
  await start({ settings: { hostMemory: 4 * QUOTA } });
  await until(() => node.find(a.id).state === 'resident');
  await endAll([first, second]);
});

test('users suspend and resume what is out, and are told; turns are no such news', async () => {
  const [a, b] = [await node.create({ memory: QUOTA }), await node.create({ memory: QUOTA })];
  const told: [id: string, by: readonly string[] | undefined][] = [];
  node.on('suspensionChanged', ({ id, suspendedBy }) => told.push([id, suspendedBy]));
  const programs = [await run(a, CHECKING), await run(b, CHECKING)];
  await until(() => times(EVICTED, a) > 0 && times(EVICTED, b) > 0);
  expect(told).toEqual([]);
  await until(() => a.state === 'out' && b.state === 'resident');
  await node.suspend(a, 'pod');
  await node.resume(a, 'pod');
  expect(told).toEqual([
    [a.id, ['policy', 'pod']],
    [a.id, ['policy']],
  ]);
  await until(() => a.state === 'resident');
  await endAll(programs);
});

test('what is deleted while it is out leaves nothing, and others have its room', async () => {
  const [gpu] = node.gpus as [(typeof node.gpus)[number]];
  const [a, b] = [await node.create({ memory: QUOTA }), await node.create({ memory: QUOTA })];
  const programs = new Map([
    [a, await run(a, CHECKING)],
    [b, await run(b, CHECKING)],
  ]);
  const out = await until(() => [a, b].find((one) => one.evicted && one.outBytes > 0));
  const other = out === a ? b : a;
  const before = node.left(gpu).memory;
  await node.release(out);
  await until(() => node.arenas.usedBy(out.id) === 0);
  expect(existsSync(out.directory)).toBe(false);
  expect(node.snapshot().allocations.map(({ specification: { id } }) => id)).toEqual([other.id]);
  expect(node.left(gpu).memory).toBeGreaterThan(before);
  const next = await node.create({ memory: QUOTA });
  await until(() => other.state === 'resident' && !other.evicted);
  await endAll([programs.get(other) as RunningProgram]);
  await endAll([await run(next, CHECKING)]);
});

test('what is drained while it is out comes back in its turn, and goes with its end', async () => {
  const [a, b] = [await node.create({ memory: QUOTA }), await node.create({ memory: QUOTA })];
  const programs = [await run(a, CHECKING), await run(b, CHECKING)];
  const out = await until(() => [a, b].find((one) => one.evicted && one.outBytes > 0));
  node.drain(out);
  expect(await (await run(out, 'say(result("cuInit", 0))')).line()).not.toBe('0');
  await endAll(programs);
  await until(() => !node.allocations.includes(out));
  expect(existsSync(out.directory)).toBe(false);
  await until(() => node.arenas.usedBy(out.id) === 0);
});

test('a program waits with a reason if no other memory can leave', async () => {
  const [a, b] = [await node.create({ memory: QUOTA }), await node.create({ memory: QUOTA })];
  const troubles: string[] = [];
  node.on('trouble', (_, { message }) => troubles.push(message));
  const holder = await run(
    a,
    `start()
handle, size = ctypes.create_string_buffer(64), 64 * MiB
pointer = ctypes.c_uint64()
must("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
must("cuIpcGetMemHandle", handle, pointer)
say("ready")
for line in sys.stdin: must("cuMemFree_v2", pointer); say("freed")`,
  );
  expect(await holder.line()).toBe('ready');
  const waiting = await run(b, 'start(); say("started")');
  await until(() => troubles.length > 0);
  expect(troubles[0]).toContain(`Allocation ${b.id} waits for GPU memory, and no turn will`);
  expect(troubles[0]).toContain('Other allocations of the GPU keep its memory');
  expect(troubles[0]).not.toContain(a.id);
  holder.tell('free');
  expect(await waiting.line()).toBe('started');
});

test('an allocation of a later gpu-proxy keeps its quota on the GPU', async () => {
  const { directory: newer, specification } = await node.create({ memory: QUOTA });
  node.leave();
  const file = path.join(newer, 'allocation.json');
  writeFileSync(file, JSON.stringify({ ...specification, version: 2 }));
  await start();
  const allocation = await node.create({ memory: QUOTA });
  const troubles: string[] = [];
  node.on('trouble', (_, { message }) => troubles.push(message));
  const waiting = await run(allocation, 'start(); say("started")');
  await until(() => troubles.length > 0);
  expect(troubles[0]).toContain(`Allocation ${allocation.id} waits for GPU memory, and no turn`);
  rmSync(newer, { recursive: true });
  expect(await waiting.line()).toBe('started');
});
