import { createConnection, type Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { locateInstallation } from '../host/installation.js';
import { DIRECT, type Launcher } from '../host/launcher.js';
import type { GpuNode, NodeOptions } from '../node.js';
import { allBegun } from '../testing/begun.js';
import { MovingProgram } from '../testing/moving-program.js';
import { startNode } from '../testing/node-under-test.js';
import { ObedientWorkers } from '../testing/obedient-worker.js';
import type { Allocation } from './allocation.js';

const MiB = 2 ** 20;
const QUOTA = 512 * MiB;
const SETTINGS = { hostMemory: 1024 * MiB, movable: true };
const MACHINE = [
  'NVIDIA_VIRTUAL_SIMULATED_GPUS=3',
  'NVIDIA_VIRTUAL_SIMULATED_MEMORY=1GiB,1GiB,2GiB',
];
/** Its driver has three GPUs, of which the last one is of another model. */
const LAUNCHER: Launcher = {
  ...DIRECT,
  command: (file, args) => ['env', [...MACHINE, file, ...args]],
};

let directory: string;
let node: GpuNode;
let here: string;
let there: string;
let programs: MovingProgram[];

beforeEach(async () => {
  programs = [];
  directory = makePrivateDirectory();
  await restart();
  [here, there] = node.gpus.map(({ uuid }) => uuid) as [string, string];
});
afterEach(async () => {
  for (const program of programs) program.kill();
  for (const allocation of node.allocations) await node.delete(allocation, { force: true });
  await node.close();
  removePrivateDirectory(directory);
});

async function restart(options: Partial<NodeOptions> = {}): Promise<void> {
  ({ node } = await startNode(path.join(directory, 'state'), {
    ...{ settings: SETTINGS, launcher: LAUNCHER },
    ...options,
  }));
}

async function start(
  allocation: Allocation,
  size = 8 * MiB,
  environment: NodeJS.ProcessEnv = {},
): Promise<MovingProgram> {
  const program = await MovingProgram.start(allocation.socketPath, size, { environment });
  programs.push(program);
  await allBegun(allocation);
  return program;
}

/** GPUs on which the driver says that the processes have memory. */
function placesOf(allocation: Allocation): string[] {
  const found = allocation.sessions.flatMap(({ workerPid }) => [
    ...(node.deviceReading?.get(workerPid)?.keys() ?? []),
  ]);
  return [...new Set(found)];
}

const gpusOf = ({ specification: { gpus, moving } }: Allocation) => ({ gpus, moving });

test('a program moves back and forth 100 times, and does not notice', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const left = node.left(node.gpus[1] as (typeof node.gpus)[1]).memory;
  const program = await start(allocation);
  const seen = await program.check();
  expect(seen).toContain(here);
  for (let move = 0; move < 100; move++) {
    const target = move % 2 === 0 ? there : here;
    program.ask(); // under way while it moves
    await node.move(allocation, target);
    expect(gpusOf(allocation)).toEqual({ gpus: [target], moving: undefined });
    expect(await program.right()).toBe(seen);
    if (move < 2) await until(() => placesOf(allocation).join() === target);
  }
  expect(allocation.specification.shownAs).toBeUndefined();
  expect(node.left(node.gpus[1] as (typeof node.gpus)[1]).memory).toBe(left);
});

test('a program that starts after a move sees the same GPU, and runs on the new one', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const seen = await (await start(allocation)).check();
  await node.move(allocation, '1');
  const later = [
    await start(allocation),
    await start(allocation, MiB, { CUDA_VISIBLE_DEVICES: here }),
  ];
  for (const program of later) expect(await program.check()).toBe(seen);
  await until(() => placesOf(allocation).join() === there);
  await expect(start(allocation, MiB, { CUDA_VISIBLE_DEVICES: there })).rejects.toThrow();
  await node.move(allocation, here);
  for (const program of later) expect(await program.check()).toBe(seen);
});

test('room on both GPUs is reserved during a move, and free on the former one after', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  await start(allocation);
  const moving = node.move(allocation, '1');
  for (const gpu of ['0', '1'])
    await expect(node.create({ gpus: [gpu], memory: 768 * MiB })).rejects.toMatchObject({
      code: 'MEMORY_NOT_LEFT',
    });
  await expect(node.move(allocation, '1')).rejects.toThrow('it is moving already');
  await moving;
  await expect(node.create({ gpus: ['0'], memory: 768 * MiB })).resolves.toBeDefined();
});

test('a suspended allocation moves, and stays suspended', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  await node.suspend(allocation);
  await node.move(allocation, '1');
  expect([allocation.state, allocation.suspended]).toEqual(['out', true]);
  program.ask();
  await node.resume(allocation);
  await program.right();
  await until(() => placesOf(allocation).join() === there);
});

test('an allocation that waits for its turn leaves an oversubscribed GPU', async () => {
  node.settings = {
    ...node.settings,
    hostMemory: 2048 * MiB,
    oversubscription: ({ uuid }) => (uuid === here ? 1.5 : 1),
  };
  const tenants = [
    await node.create({ gpus: ['0'], memory: 700 * MiB }),
    await node.create({ gpus: ['0'], memory: 700 * MiB }),
  ] as const;
  for (const tenant of tenants) await (await start(tenant)).check();
  const waiting = await until(() => tenants.find(({ evicted }) => evicted));
  await node.move(waiting, '1');
  // It is out until it wants the GPU.
  for (const program of programs) await program.check();
  await until(() => tenants.every(({ state }) => state === 'resident'));
  await until(() => placesOf(waiting).join() === there);
});

test('what cannot move is refused with the reason, and goes on', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  const refusal = (gpu: string, one = allocation) =>
    node.move(one, gpu).then(
      () => 'moved',
      (error: Error) => error.message,
    );
  expect(await refusal('0')).toContain('it is there already');
  expect(await refusal('2')).toContain(
    'it is on another model: Simulated GPU with 1 GiB, not Simulated GPU with 2 GiB',
  );
  expect(await refusal('7')).toContain('GPU 7 does not exist');
  const full = await node.create({ gpus: ['1'], memory: 768 * MiB });
  expect(await refusal('1')).toContain('256 MiB');
  await node.delete(full, { force: true });
  const spread = await node.create({ gpus: ['0', '1'], memory: MiB });
  expect(await refusal('1', spread)).toContain('it has 2 GPUs');
  node.settings = { ...node.settings, movable: false };
  expect(await refusal('1')).toContain('the option movable of gpu-proxy is off');
  node.settings = { ...node.settings, movable: true, hostMemory: 0 };
  expect(await refusal('1')).toContain('hostMemory is 0');
  expect(gpusOf(allocation)).toEqual({ gpus: [here], moving: undefined });
  await program.check();
});

test('a program that began before moving was allowed stays', async () => {
  node.settings = { ...node.settings, movable: false };
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  node.settings = { ...node.settings, movable: true };
  await expect(node.move(allocation, '1')).rejects.toMatchObject({
    code: 'PROGRAM_NOT_MOVED',
    message: expect.stringContaining('it began before allocations could move'),
  });
  expect(gpusOf(allocation)).toEqual({ gpus: [here], moving: undefined });
  await program.check();
});

test('a worker killed at any moment of a move takes only its own session along', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: QUOTA });
  const program = await start(allocation);
  const survivors = allocation.sessions.map(({ workerPid }) => workerPid);
  for (let kill = 0; kill < 6; kill++) {
    const victim = await start(allocation, 16 * MiB);
    const worker = allocation.sessions.find(({ workerPid }) => !survivors.includes(workerPid));
    program.ask();
    const moving = node.move(allocation, kill % 2 === 0 ? there : here).catch(() => {});
    await delay(kill * 15);
    worker?.kill();
    await moving;
    await program.right();
    victim.kill();
    await until(() => allocation.sessionCount === 1);
    const [gpu] = allocation.specification.gpus;
    expect(allocation.specification.moving).toBeUndefined();
    if (gpu !== (kill % 2 === 0 ? there : here))
      await node.move(allocation, kill % 2 ? here : there);
    await until(() => placesOf(allocation).join() === allocation.specification.gpus.join());
  }
});

describe('with workers that answer as told', () => {
  let workers: ObedientWorkers;
  let clients: Socket[];
  let allocation: Allocation;

  beforeEach(async () => {
    clients = [];
    await node.close();
    workers = new ObedientWorkers(path.join(directory, 'worker'));
    await restart({ installation: { ...locateInstallation(), worker: workers.path } });
    allocation = await node.create({ gpus: ['0'], memory: QUOTA });
    for (let i = 0; i < 2; i++) clients.push(createConnection(allocation.socketPath));
    for (const client of clients) client.on('error', () => {});
    await until(() => allocation.sessions.filter(({ session }) => session.introduced).length === 2);
    workers.tell({ suspend: `done ${4 * MiB}` });
    workers.forget();
  });
  afterEach(() => {
    for (const client of clients) client.destroy();
  });

  const movesOf = () => workers.commands.filter((one) => one.includes(' move '));

  test('all sessions return if one of them does not move', async () => {
    workers.tell({ suspend: `done ${4 * MiB}`, [`move ${there}`]: 'error it is a test' }, 2);
    await expect(node.move(allocation, '1')).rejects.toMatchObject({
      code: 'PROGRAM_NOT_MOVED',
      message: expect.stringContaining('it is a test. Nothing has changed.'),
    });
    expect(movesOf().sort()).toEqual([
      `1 move ${here}`,
      `1 move ${there}`,
      `2 move ${here}`,
      `2 move ${there}`,
    ]);
    expect(gpusOf(allocation)).toEqual({ gpus: [here], moving: undefined });
    expect(allocation.state).toBe('resident');
  });

  test('all sessions return if the memory of one has no room on the other GPU', async () => {
    workers.tell({ suspend: `done ${4 * MiB}`, [`resume on ${there}`]: 'error no room' }, 2);
    await expect(node.move(allocation, '1')).rejects.toMatchObject({ code: 'ALLOCATION_STAYS' });
    expect(movesOf()).toContain(`2 move ${here}`);
    expect(gpusOf(allocation)).toEqual({ gpus: [here], moving: undefined });
    expect([allocation.state, allocation.suspended]).toEqual(['resident', false]);
  });

  test('a session that cannot return ends, and no other one', async () => {
    const lost = { [`move ${there}`]: 'error it is a test', [`move ${here}`]: 'error it is lost' };
    workers.tell({ suspend: `done ${4 * MiB}`, ...lost }, 2);
    await expect(node.move(allocation, '1')).rejects.toMatchObject({
      code: 'PROGRAM_NOT_MOVED',
      message: expect.stringMatching(
        /it is a test\. The sessions of process \d+ \(.+\) could not return, and have ended\./,
      ),
    });
    await until(() => allocation.sessionCount === 1);
    expect(allocation.sessions.map(({ session }) => session.record.number)).toEqual([1]);
  });
});
