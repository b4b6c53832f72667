import { createConnection, type Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { AdminCalls, AllocationMessage } from '@nvidia-virtual/node-state/admin/messages';
import { eventually, until } from '@nvidia-virtual/service/testing/eventually';
import { askNode } from '../testing/ask-node.js';
import { CommandUnderTest, Place } from '../testing/command-under-test.js';
import { killArbiter } from '../testing/kill-arbiter.js';
import { MovingProgram } from '../testing/moving-program.js';
import { ObedientWorkers } from '../testing/obedient-worker.js';

const MiB = 2 ** 20;

let place: Place;
let state: string;
/** For the next gpu-proxy. */
let environment: NodeJS.ProcessEnv;
let server: CommandUnderTest;
let id: string;
let socket: string;
let here: string;
let there: string;

beforeEach(() => {
  place = new Place();
  state = path.join(place.directory, 'state');
  environment = { NVIDIA_VIRTUAL_SIMULATED_GPUS: '2' };
});
afterEach(async () => {
  await eventually(async () => expect((await look()).sessions).toEqual([]));
  server.process.kill('SIGTERM');
  await server.end();
  killArbiter(state);
  place.remove();
});

async function serve(): Promise<void> {
  const words = ['serve', '--state', state, '--backend', 'simulated', '--movable', 'true'];
  server = new CommandUnderTest(place, words, environment);
  await server.printed('"msg":"serving"');
}

/** Kills gpu-proxy, and starts the next one. */
async function replace(): Promise<void> {
  server.process.kill('SIGKILL');
  await server.end();
  await serve();
}

function ask<Name extends keyof AdminCalls>(name: Name, request: AdminCalls[Name][0]) {
  return askNode(state, name, request);
}

async function create(): Promise<void> {
  await serve();
  const { gpus } = await ask('listGpus', {});
  [here, there] = gpus.map(({ uuid }) => uuid) as [string, string];
  const request = { gpus: [here], memoryBytes: 512 * MiB };
  ({ id, socketPath: socket } = await ask('createAllocation', request));
}

function look(): Promise<AllocationMessage> {
  return ask('getAllocation', { id });
}

function move(gpu: string): Promise<AllocationMessage> {
  return ask('moveAllocation', { id, gpu });
}

describe('at a known step', () => {
  let workers: ObedientWorkers;
  let client: Socket;

  beforeEach(async () => {
    const directory = path.join(place.directory, 'build');
    workers = ObedientWorkers.inBuild(directory);
    environment = { ...environment, NVIDIA_VIRTUAL_BUILD: directory };
    await create();
    client = createConnection(socket);
    client.on('error', () => {});
    // Once its memory can leave, the session has begun.
    workers.tell({ suspend: `done ${MiB}` });
    await eventually(async () => {
      const { outBytes } = await ask('suspendAllocation', { id });
      await ask('resumeAllocation', { id });
      expect(outBytes).toBe(MiB);
    });
    workers.forget();
  });
  afterEach(() => {
    client.destroy();
  });

  async function killedIn(command: string): Promise<void> {
    workers.tell({ suspend: `done ${MiB}`, [command]: null });
    const moved = expect(move(there)).rejects.toThrow();
    const [word = ''] = command.split(' on ');
    await until(() => workers.commands.some((one) => one.startsWith(`1 ${word}`)));
    workers.tell({ suspend: `done ${MiB}` });
    await replace();
    await moved;
    await eventually(async () => {
      expect(workers.commands.at(-1)).toBe('1 resume');
      expect(await look()).toMatchObject({ state: 'MEMORY_STATE_RESIDENT', outBytes: 0 });
    });
  }

  test('a session returns before it goes on, after a kill while it moved', async () => {
    workers.tell({ suspend: `done ${MiB}`, [`move ${there}`]: null });
    await killedIn(`move ${there}`);
    expect(workers.commands.slice(-2)).toEqual([`1 move ${here}`, '1 resume']);
    expect((await look()).gpuUuids).toEqual([here]);
    expect((await move(there)).gpuUuids).toEqual([there]);
  });

  test('a session stays on the new GPU after a kill while its memory came back', async () => {
    await killedIn(`resume on ${there}`);
    expect(workers.commands.slice(-2)).toEqual([`1 move ${there}`, '1 resume']);
    expect((await look()).gpuUuids).toEqual([there]);
    expect((await move(here)).gpuUuids).toEqual([here]);
  });
});

test('programs notice no kill of gpu-proxy or the arbiter at any moment of a move', async () => {
  await create();
  const programs = await Promise.all([
    MovingProgram.start(socket, 60 * MiB),
    MovingProgram.start(socket, 100_000),
  ]);
  try {
    for (let kill = 0; kill < 8; kill++) {
      for (const program of programs) program.ask();
      const target = (await look()).gpuUuids[0] === here ? there : here;
      const moving = move(target).catch(() => {});
      await delay(kill * 40);
      if (kill % 3 === 2) killArbiter(state, 'SIGKILL');
      await replace();
      await moving;
      const seen = await Promise.all(programs.map((program) => program.right()));
      expect(seen.every((gpu) => gpu.startsWith(here))).toBe(true);
    }
    await move((await look()).gpuUuids[0] === here ? there : here);
    for (const program of programs) await program.check();
  } finally {
    for (const program of programs) program.kill();
  }
});
