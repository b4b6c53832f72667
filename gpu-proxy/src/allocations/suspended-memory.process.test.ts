import { closeSync, openSync, readdirSync, readlinkSync, writeFileSync, writeSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { locateInstallation } from '../host/installation.js';
import type { GpuNode, NodeOptions } from '../node.js';
import { startNode } from '../testing/node-under-test.js';
import { ObedientWorkers } from '../testing/obedient-worker.js';
import type { Allocation } from './allocation.js';

const MiB = 2 ** 20;
const QUOTA = 100 * MiB;
/** Where the quota file has the used bytes of the first session: native/worker/accounts/quota.h */
const FIRST_SLOT = 256;
const HOST_MEMORY = 64 * MiB;

let directory: string;
let workers: ObedientWorkers;
let node: GpuNode;
let clients: Socket[];
/** Number of commands that a test has looked at. */
let seen: number;

beforeEach(async () => {
  clients = [];
  seen = 0;
  directory = makePrivateDirectory();
  workers = new ObedientWorkers(path.join(directory, 'worker'));
  await restart();
});
afterEach(async () => {
  for (const client of clients) client.destroy();
  for (const allocation of node.allocations) await node.delete(allocation, { force: true });
  await until(() => node.arenas.used === 0);
  expect(openArenas()).toEqual([]);
  await node.close();
  removePrivateDirectory(directory);
});

async function restart(options: Partial<NodeOptions> = {}): Promise<void> {
  const installation = { ...locateInstallation(), worker: workers.path };
  ({ node } = await startNode(path.join(directory, 'state'), {
    installation,
    settings: { hostMemory: HOST_MEMORY },
    ...options,
  }));
}

/** Descriptors of arenas in this process. */
function openArenas(): string[] {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes('nvidia-virtual-arena');
    } catch {
      return false; // that of the directory
    }
  });
}

/** Starts sessions, numbered from 1. */
async function connect(allocation: Allocation, count = 1): Promise<void> {
  const before = allocation.sessions.length;
  for (let i = 0; i < count; i++) clients.push(createConnection(allocation.socketPath));
  for (const client of clients) client.on('error', () => {});
  await until(() => {
    const begun = allocation.sessions.filter(({ session }) => session.introduced);
    return begun.length === before + count;
  });
}

async function allocate(sessions = 1): Promise<Allocation> {
  const allocation = await node.create({ memory: QUOTA });
  await connect(allocation, sessions);
  return allocation;
}

/** What a worker may write into the file of the quota. */
function writeUsed({ written }: Allocation, bytes: number): void {
  const file = openSync(path.join(path.dirname(written[0] as string), 'quota'), 'r+');
  const used = Buffer.alloc(8);
  used.writeBigUInt64LE(BigInt(bytes));
  writeSync(file, used, 0, 8, FIRST_SLOT);
  closeSync(file);
}

/** The commands that the workers got since the last call. */
function commands(): string[] {
  const news = workers.commands.slice(seen);
  seen += news.length;
  return news.sort();
}

test('memory leaves into a populated arena, and comes back', async () => {
  const allocation = await allocate(2);
  workers.tell({ suspend: `done ${5 * MiB + 1}` }, 1);
  await node.suspend(allocation);
  expect(commands()).toEqual([
    `1 leave ${6 * MiB}/${6 * MiB}`,
    '1 suspend',
    '2 suspend', // has no memory
  ]);
  expect([allocation.state, allocation.outBytes]).toEqual(['out', 5 * MiB + 1]);
  expect(node.arenas.used).toBe(6 * MiB);
  expect(openArenas()).toEqual([]);

  await node.resume(allocation);
  expect(commands()).toEqual(['1 resume', '2 resume']);
  expect([allocation.state, allocation.outBytes]).toEqual(['resident', 0]);
  expect(node.arenas.used).toBe(6 * MiB);
});

test('an arena is used again, and replaced by a larger one', async () => {
  const allocation = await allocate();
  const cycle = async (bytes: number) => {
    workers.tell({ suspend: `done ${bytes}` });
    await node.suspend(allocation);
    await node.resume(allocation);
    return commands();
  };
  await cycle(6 * MiB);
  expect(await cycle(4 * MiB)).toEqual(['1 leave', '1 resume', '1 suspend']);
  const size = 8 * MiB;
  expect(await cycle(size)).toEqual(['1 drop', `1 leave ${size}/${size}`, '1 resume', '1 suspend']);
  await until(() => node.arenas.used === size);
});

test('the sum of arenas has a limit; unused ones are given up for others', async () => {
  const [first, second] = [await allocate(), await allocate()];
  workers.tell({ suspend: `done ${40 * MiB}` });
  await node.suspend(first);
  await expect(node.suspend(second)).rejects.toMatchObject({
    code: 'HOST_MEMORY_NOT_LEFT',
    message: expect.stringContaining('it needs 40 MiB of host memory, and 24 MiB are left of the'),
  });
  expect([second.state, second.outBytes]).toEqual(['resident', 0]);
  expect(second.specification.suspended).toBeUndefined();

  await node.resume(first);
  commands();
  await node.suspend(second);
  expect(commands()).toContain('1 drop');
  await until(() => node.arenas.used === 40 * MiB);
  expect(second.state).toBe('out');
});

/** GPU 1, whose allocations may have twice its memory. */
async function addOversubscribed(): Promise<void> {
  const [gpu] = node.gpus as [(typeof node.gpus)[number]];
  node.leave();
  await restart({
    gpus: [gpu, { ...gpu, index: 1, uuid: 'GPU-other', memory: 40 * MiB, contextMemory: 0 }],
    settings: { hostMemory: HOST_MEMORY, oversubscription: ({ index }) => (index === 1 ? 2 : 1) },
  });
}

test('host memory that is promised to an oversubscribed GPU is not used for others', async () => {
  await addOversubscribed();
  for (let count = 0; count < 2; count++) await node.create({ gpus: ['1'], memory: 25 * MiB });
  const [first, second] = [
    await node.create({ gpus: ['0'], memory: QUOTA }),
    await node.create({ gpus: ['0'], memory: QUOTA }),
  ];
  for (const allocation of [first, second]) await connect(allocation);
  workers.tell({ suspend: `done ${10 * MiB}` });
  await node.suspend(first);
  await expect(node.suspend(second)).rejects.toMatchObject({
    code: 'HOST_MEMORY_PROMISED',
    message: expect.stringMatching(/needs 10 MiB .* 4 MiB are left, .* 64 MiB .*, 50 MiB are prom/),
  });
  expect(second.state).toBe('resident');
  await expect(node.create({ gpus: ['1'], memory: 5 * MiB })).rejects.toMatchObject({
    code: 'OVERSUBSCRIPTION_NOT_LEFT',
  });

  // An arena that is not needed now is given up for another one, and for a new promise.
  await node.resume(first);
  await node.suspend(second);
  await until(() => node.arenas.used === 10 * MiB);
  await node.resume(second);
  await node.create({ gpus: ['1'], memory: 12 * MiB });
  await expect(node.suspend(second)).rejects.toMatchObject({
    code: 'HOST_MEMORY_PROMISED',
    message: expect.stringMatching(/needs 10 MiB .* 2 MiB are left, .* 62 MiB are promised/),
  });
});

test('an arena that a worker keeps is not promised to an oversubscribed GPU', async () => {
  await addOversubscribed();
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  await connect(allocation);
  workers.tell({ suspend: `done ${10 * MiB}`, keep: true });
  await node.suspend(allocation);
  await node.resume(allocation);
  for (let count = 0; count < 2; count++) await node.create({ gpus: ['1'], memory: 25 * MiB });
  await expect(node.create({ gpus: ['1'], memory: 5 * MiB })).rejects.toMatchObject({
    code: 'OVERSUBSCRIPTION_NOT_LEFT',
  });
  expect(node.arenas.used).toBe(10 * MiB);
  await node.create({ gpus: ['1'], memory: 4 * MiB });
});

test('a worker that keeps an arena does not get the memory twice', async () => {
  const allocation = await allocate();
  for (const size of [20, 40]) {
    workers.tell({ suspend: `done ${size * MiB}`, keep: true });
    await node.suspend(allocation);
    await node.resume(allocation);
  }
  expect(node.arenas.used).toBe(60 * MiB);
  const other = await allocate();
  workers.tell({ suspend: `done ${10 * MiB}` }, 1);
  await expect(node.suspend(other)).rejects.toMatchObject({ code: 'HOST_MEMORY_NOT_LEFT' });
});

test('arenas that workers keep do not exceed the quota of their allocation', async () => {
  node.settings = { ...node.settings, hostMemory: 2 ** 30 };
  const allocation = await node.create({ memory: 10 * MiB });
  await connect(allocation);
  const cycle = async (size: number) => {
    workers.tell({ suspend: `done ${size * MiB}`, keep: true });
    await node.suspend(allocation);
    await node.resume(allocation);
  };
  await cycle(30);
  await cycle(40);
  await expect(cycle(41)).rejects.toMatchObject({
    code: 'ARENAS_KEPT',
    message: expect.stringMatching(/keep 70 MiB of host .*, and with 42 MiB more .*, 74 MiB\. /),
  });
  expect([allocation.state, node.arenas.used]).toEqual(['resident', 70 * MiB]);
});

test('an arena counts after its session and gpu-proxy until no process has it', async () => {
  const { id } = await allocate();
  workers.tell({ suspend: `done ${40 * MiB}`, passes: true });
  await node.suspend(node.find(id));
  node.leave();
  await restart();
  node.find(id).kill();
  await until(() => node.find(id).sessions.length === 0);
  node.leave();
  await restart();
  expect(node.arenas.used).toBe(40 * MiB);
  expect(node.arenas.usedBy(id)).toBe(40 * MiB);
  workers.tell({});
  await until(() => node.arenas.used === 0);
});

test('memory that goes from one session to another gets another arena', async () => {
  node.settings = { ...node.settings, hostMemory: 2 ** 30 };
  const allocation = await node.create({ memory: 10 * MiB });
  await connect(allocation, 2);
  for (const [one, other] of [
    [70, 4],
    [4, 70],
  ]) {
    workers.tell({ suspend: `done ${Number(one) * MiB}` }, 1);
    workers.tell({ suspend: `done ${Number(other) * MiB}` }, 2);
    await node.suspend(allocation);
    await node.resume(allocation);
  }
  expect(node.arenas.used).toBe(74 * MiB);
});

test('a worker cannot take more than the quota of its allocation', async () => {
  const allocation = await allocate(2);
  workers.tell({ suspend: `done ${300 * MiB}` }, 2);
  await expect(node.suspend(allocation)).rejects.toMatchObject({
    code: 'MEMORY_STAYS',
    message: expect.stringMatching(/reports 300 MiB, and all .* 300 MiB, more than 100 MiB\. /),
  });
  expect(commands()).toEqual(['1 resume', '1 suspend', '2 resume', '2 suspend']);
  expect(node.arenas.used).toBe(0);
});

test('without a quota, that is the memory of the GPU', async () => {
  const allocation = await node.create({});
  await connect(allocation);
  workers.tell({ suspend: `done ${2 ** 40}` });
  await expect(node.suspend(allocation)).rejects.toMatchObject({ code: 'MEMORY_STAYS' });
});

test('memory stays on the GPU if the node has too little', async () => {
  node.leave();
  await restart({ nodeMemory: () => ({ total: 100 * MiB, available: 15 * MiB }) });
  const allocation = await allocate();
  workers.tell({ suspend: `done ${10 * MiB + 1}` });
  await expect(node.suspend(allocation)).rejects.toMatchObject({
    code: 'HOST_MEMORY_LOW',
    message: expect.stringContaining('15 MiB are available on the node, of which 5 MiB must stay'),
  });
  workers.tell({ suspend: `done ${10 * MiB}` });
  await node.suspend(allocation);
});

test('an unused arena is given up if the node gets short of memory', async () => {
  node.leave();
  let available = 100 * MiB;
  await restart({ nodeMemory: () => ({ total: 100 * MiB, available }) });
  const [first, second] = [await allocate(), await allocate()];
  workers.tell({ suspend: `done ${10 * MiB}` });
  for (const allocation of [first, second]) await node.suspend(allocation);
  await node.resume(first);
  available = 4 * MiB;
  await until(() => node.arenas.used === 10 * MiB);
  expect(commands().filter((command) => command.includes('drop'))).toHaveLength(1);
  expect(second.outBytes).toBe(10 * MiB);
});

test('an unused arena is given up for other files of the node', async () => {
  node.leave();
  const available = () => 50 * MiB - node.arenas.used;
  await restart({ nodeMemory: () => ({ total: 100 * MiB, available: available() }) });
  const allocation = await allocate();
  workers.tell({ suspend: `done ${10 * MiB}` });
  await node.suspend(allocation);
  await expect(node.arenas.setAside(40 * MiB)).rejects.toThrow(
    'it needs 40 MiB of host memory, and 40 MiB are available on the node, of which 5 MiB must',
  );
  await node.resume(allocation);
  const giveBack = await node.arenas.setAside(40 * MiB);
  expect(node.arenas.used).toBe(0);
  await expect(node.arenas.setAside(6 * MiB)).rejects.toThrow('10 MiB are available');
  giveBack();
  (await node.arenas.setAside(6 * MiB))();
});

test('unused arenas are given up if the limit is lowered', async () => {
  const allocation = await allocate();
  workers.tell({ suspend: `done ${10 * MiB}` });
  await node.suspend(allocation);
  node.settings = { ...node.settings, hostMemory: 0 };
  await node.resume(allocation);
  await until(() => node.arenas.used === 0);
});

test('a worker that refuses to give up its arena is asked once, and keeps it', async () => {
  const [first, second] = [await allocate(), await allocate()];
  workers.tell({ suspend: `done ${40 * MiB}`, drop: 'error one of its calls does not end' });
  await node.suspend(first);
  await node.resume(first);
  await expect(node.suspend(second)).rejects.toMatchObject({ code: 'HOST_MEMORY_NOT_LEFT' });
  expect(commands().filter((command) => command.includes('drop'))).toHaveLength(1);
  expect(node.arenas.used).toBe(40 * MiB);
});

test('with a limit of 0, only GPU time is taken', async () => {
  node.settings = { ...node.settings, hostMemory: 0 };
  const allocation = await allocate();
  workers.tell({ suspend: `done ${10 * MiB}` });
  await node.suspend(allocation);
  expect([commands(), allocation.outBytes]).toEqual([['1 suspend'], 0]);
});

test.each([
  ['exit 3', 'nvidia-virtual-arena ended with 3'],
  ['echo Cannot allocate memory >&2; exit 1', 'Cannot allocate memory'],
  ['kill -9 $$', 'nvidia-virtual-arena was killed by SIGKILL'],
])('an arena that is not made (%s) changes nothing', async (script, reason) => {
  node.leave();
  const arena = path.join(directory, 'arena');
  writeFileSync(arena, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  await restart({ installation: { ...locateInstallation(), worker: workers.path, arena } });
  const allocation = await allocate(2);
  workers.tell({ suspend: `done ${10 * MiB}` });
  await expect(node.suspend(allocation)).rejects.toMatchObject({
    code: 'ARENA_NOT_MADE',
    message: expect.stringContaining(`20 MiB of host memory could not be prepared: ${reason}.`),
  });
  expect(commands()).toEqual(['1 resume', '1 suspend', '2 resume', '2 suspend']);
  await until(() => node.arenas.used === 0);
});

test('if the memory of one session cannot leave, that of all comes back', async () => {
  const allocation = await allocate(2);
  workers.tell({ suspend: `done ${10 * MiB}` });
  workers.tell({ suspend: `done ${5 * MiB}`, leave: 'error it is in use elsewhere' }, 2);
  await expect(node.suspend(allocation)).rejects.toMatchObject({
    code: 'MEMORY_STAYS',
    message: expect.stringContaining('cannot leave: it is in use elsewhere. Nothing has changed'),
  });
  expect(commands().filter((command) => command.includes('resume'))).toHaveLength(2);
  expect([allocation.state, allocation.outBytes]).toEqual(['resident', 0]);
});

test('memory that cannot come back stays out, and is asked for again', async () => {
  const allocation = await allocate(3);
  workers.tell({ suspend: `done ${4 * MiB}` }, 1);
  workers.tell({ suspend: `done ${6 * MiB}` }, 2);
  await node.suspend(allocation);
  commands();
  workers.tell({ suspend: 'done 0', resume: 'error the GPU has 1 MiB left' }, 1);
  await expect(node.resume(allocation)).rejects.toMatchObject({
    code: 'MEMORY_NOT_BACK',
    message: expect.stringMatching(/^Allocation \w+ stays suspended, .* the GPU has 1 MiB left\. /),
  });
  expect(allocation.specification.suspended).toBe(true);
  // The session with most memory has gone on, and is suspended again.
  await until(() => allocation.outBytes === 10 * MiB);
  expect(allocation.state).toBe('out');
  expect(commands()).toEqual(expect.arrayContaining(['1 resume', '2 leave', '2 resume']));

  workers.tell({});
  await node.resume(allocation);
  expect([allocation.state, allocation.outBytes]).toEqual(['resident', 0]);
});

test('the next gpu-proxy knows what is out, and how much host memory that takes', async () => {
  const { id } = await allocate();
  workers.tell({ suspend: `done ${5 * MiB}` });
  await node.suspend(node.find(id));
  node.leave();
  workers.tell({ suspend: 'done 0' });
  await restart();
  const allocation = node.find(id);
  expect([allocation.state, allocation.outBytes]).toEqual(['out', 5 * MiB]);
  expect(node.arenas.used).toBe(6 * MiB);
  await node.resume(allocation);
  commands();
  workers.tell({ suspend: `done ${6 * MiB}` });
  await node.suspend(allocation);
  expect(commands()).toEqual(['1 leave', '1 suspend']);
});

test('a gpu-proxy that left during a suspension does not say that it is suspended', async () => {
  const allocation = await allocate();
  workers.tell({ suspend: `done ${5 * MiB}`, leave: null });
  const suspended = node.suspend(allocation);
  await until(() => commands().some((command) => command.startsWith('1 leave')));
  node.leave();
  workers.tell({});
  await restart();
  const [again] = node.allocations;
  expect(again?.specification.suspended).toBeUndefined();
  await until(() => commands().includes('1 resume'));
  expect(node.arenas.used).toBe(6 * MiB);
  again?.kill();
  await expect(suspended).rejects.toMatchObject({ code: 'ALLOCATION_UNKNOWN' });
});

test.each([
  ['is resumed when there is room', 1, undefined],
  ['waits for its turn on an oversubscribed GPU', 2, ['policy']],
])('memory without room after a takeover %s', async (_, factor, suspendedBy) => {
  const settings = { hostMemory: HOST_MEMORY, oversubscription: () => factor };
  const { id } = await allocate();
  workers.tell({ suspend: `done ${5 * MiB}`, leave: null });
  const suspended = node.suspend(node.find(id));
  await until(() => commands().some((command) => command.startsWith('1 leave')));
  node.leave();
  workers.tell({ resume: 'error the GPU has 1 MiB left' });
  const reported: string[] = [];
  await restart({
    settings,
    observe: (made) => made.on('trouble', (_, { code }) => reported.push(code)),
  });
  await until(() => reported.length > 0);
  expect(reported).toEqual(['MEMORY_NOT_BACK']);
  expect(node.find(id).specification).toMatchObject({ suspended: true });
  expect(node.find(id).specification.suspendedBy).toEqual(suspendedBy);
  workers.tell({});
  // The next one knows as well that nobody suspends it.
  node.leave();
  await restart({ settings });
  if (factor > 1) await node.resume(node.find(id), 'policy');
  await until(() => node.find(id).specification.suspended === undefined);
  expect(node.find(id).state).toBe('resident');
  node.find(id).kill();
  await expect(suspended).rejects.toMatchObject({ code: 'ALLOCATION_UNKNOWN' });
});

test('a session that dies while its memory leaves does not hold the others up', async () => {
  const allocation = await allocate(2);
  workers.tell({ suspend: `done ${4 * MiB}` });
  workers.tell({ suspend: `done ${4 * MiB}`, leave: null }, 1);
  const suspended = node.suspend(allocation);
  await until(() => commands().some((command) => command.startsWith('1 leave')));
  process.kill(allocation.sessions[0]?.workerPid as number, 'SIGKILL');
  await suspended;
  expect([allocation.state, allocation.outBytes]).toEqual(['out', 4 * MiB]);
  await until(() => node.arenas.used === 4 * MiB);
});

test('a late session whose worker refuses at once is not asked without a pause', async () => {
  const allocation = await allocate();
  workers.tell({ waits: true, suspend: 'error it does not want to' }, 2);
  clients.push(createConnection(allocation.socketPath));
  await until(() => allocation.sessions.length === 2);
  await node.suspend(allocation);
  commands();
  workers.tell({ suspend: 'error it does not want to' }, 2);
  const asked = () => workers.commands.filter((command) => command === '2 suspend').length;
  const before = asked();
  await until(() => asked() > before);
  for (let i = 0; i < 20; i++) await allocation.sessions[0]?.command('drop');
  expect(asked()).toBeLessThan(before + 10);
  await node.resume(allocation);
});

test('the memory of a session that begins beside a suspension leaves too', async () => {
  const allocation = await allocate();
  workers.tell({ waits: true }, 2);
  clients.push(createConnection(allocation.socketPath));
  await until(() => allocation.sessions.length === 2);
  await node.suspend(allocation);
  expect(allocation.outBytes).toBe(0);
  workers.tell({ suspend: `done ${4 * MiB}` }, 2);
  await until(() => allocation.outBytes === 4 * MiB);
  await node.resume(allocation);
  expect(allocation.outBytes).toBe(0);
});

test('a silent worker does not hold up other allocations', async () => {
  const [silent, other] = [await allocate(), await allocate()];
  workers.tell({ suspend: `done ${4 * MiB}`, leave: null, drop: null });
  const never = node.suspend(silent);
  await until(() => commands().some((command) => command.startsWith('1 leave')));
  workers.tell({ suspend: `done ${4 * MiB}` });
  await node.suspend(other);
  await node.resume(other);
  expect([silent.state, other.state]).toEqual(['leaving', 'resident']);
  await node.delete(silent, { force: true });
  await Promise.allSettled([never]);
});

test('for the policy, a part of the memory leaves and comes back', async () => {
  const allocation = await allocate(2);
  workers.tell({ suspend: `done ${4 * MiB}` });
  workers.tell({ suspend: `done ${10 * MiB}` }, 1);
  await allocation.evict(0);
  expect([allocation.state, allocation.evicted, allocation.outBytes]).toEqual(['out', true, 0]);
  await allocation.evict(6 * MiB);
  expect(commands().filter((command) => command.includes('leave'))).toEqual([
    '1 leave',
    `1 leave ${10 * MiB}/${10 * MiB}`,
  ]);
  expect(allocation.outBytes).toBe(6 * MiB);
  workers.tell({ suspend: `done ${4 * MiB}` }, 1);
  await allocation.evict(5 * MiB);
  expect([allocation.outBytes, allocation.here]).toEqual([11 * MiB, 0]);
  await allocation.enter(7 * MiB);
  expect([allocation.outBytes, allocation.state]).toEqual([4 * MiB, 'out']);

  // A user's command takes all of it.
  workers.tell({ suspend: `done ${8 * MiB}` }, 1);
  await node.suspend(allocation);
  expect(allocation.outBytes).toBe(16 * MiB);
  await node.resume(allocation);
  expect([allocation.suspended, allocation.evicted]).toEqual([false, true]);
  await allocation.unsuspend('policy');
  expect([allocation.state, allocation.outBytes]).toEqual(['resident', 0]);
});

test('a part that cannot leave, or come back, changes nothing of the others', async () => {
  const allocation = await allocate();
  workers.tell({ suspend: `done ${10 * MiB}`, leave: 'error it is in use' });
  await expect(allocation.evict(MiB)).rejects.toMatchObject({ code: 'MEMORY_STAYS' });
  expect([allocation.state, allocation.evicted]).toEqual(['resident', false]);
  workers.tell({ suspend: `done ${10 * MiB}` });
  await allocation.evict(2 * MiB);
  workers.tell({ suspend: `done ${8 * MiB}`, leave: `lacks ${2 ** 40}` });
  await expect(allocation.evict(2 * MiB)).rejects.toMatchObject({ code: 'ARENAS_KEPT' });
  expect([allocation.state, allocation.outBytes]).toEqual(['out', 2 * MiB]);
  workers.tell({ enter: 'error the GPU has no room' });
  await expect(allocation.enter(MiB)).rejects.toMatchObject({ code: 'MEMORY_NOT_BACK' });
  expect([allocation.state, allocation.outBytes]).toEqual(['out', 2 * MiB]);
});

test('an arena with free room grows only by what it lacks', async () => {
  const allocation = await allocate();
  workers.tell({ suspend: `done ${40 * MiB}` });
  await allocation.evict(32 * MiB);
  await allocation.enter(24 * MiB);
  expect(allocation.outBytes).toBe(8 * MiB);
  commands();
  workers.tell({ suspend: `done ${52 * MiB}` });
  await node.suspend(allocation);
  expect(commands()).toContain(`1 leave ${20 * MiB}/${20 * MiB}`);
  expect(allocation.outBytes).toBe(60 * MiB);
});

test('a worker that says it uses more than its quota may not keep memory', async () => {
  const allocation = await allocate();
  workers.tell({ suspend: `done ${60 * MiB}` });
  await allocation.evict(60 * MiB);
  writeUsed(allocation, 3 * QUOTA);
  expect([allocation.memoryUsed, allocation.here]).toEqual([3 * QUOTA, QUOTA - 60 * MiB]);
});

test('a gpu-proxy that ends while memory comes back expects it on the GPU', async () => {
  const { id } = await allocate();
  workers.tell({ suspend: `done ${10 * MiB}` });
  await node.find(id).evict(8 * MiB);
  workers.tell({ suspend: `done ${10 * MiB}`, enter: null });
  void node.find(id).enter(6 * MiB);
  await until(() => commands().includes('1 enter'));
  node.leave();
  workers.tell({ suspend: `done ${8 * MiB}` });
  await restart();
  expect(node.find(id).outBytes).toBe(2 * MiB);
});

test('the next gpu-proxy lets no more leave than the policy wants', async () => {
  const { id } = await allocate();
  workers.tell({ suspend: `done ${10 * MiB}` });
  await node.find(id).evict(4 * MiB);
  node.leave();
  commands();
  await restart();
  await until(() => commands().includes('1 suspend'));
  const allocation = node.find(id);
  expect([allocation.state, allocation.outBytes]).toEqual(['out', 4 * MiB]);
  await allocation.evict(2 * MiB);
  expect(allocation.outBytes).toBe(6 * MiB);
});
