import { createConnection, type Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { AllocationMessage } from '@nvidia-virtual/node-state/admin/messages';
import { eventually, until } from '@nvidia-virtual/service/testing/eventually';
import { askNode } from '../testing/ask-node.js';
import { CommandUnderTest, Place } from '../testing/command-under-test.js';
import { KeepingProgram } from '../testing/keeping-program.js';
import { killArbiter } from '../testing/kill-arbiter.js';
import { ObedientWorkers } from '../testing/obedient-worker.js';

const MiB = 2 ** 20;

let place: Place;
let state: string;
/** For the next gpu-proxy. */
let build: NodeJS.ProcessEnv;
let server: CommandUnderTest;
let id: string;
let socket: string;

beforeEach(() => {
  place = new Place();
  state = path.join(place.directory, 'state');
  build = {};
});
afterEach(async () => {
  await eventually(async () => expect((await look()).sessions).toEqual([]));
  server.process.kill('SIGTERM');
  await server.end();
  killArbiter(state);
  place.remove();
});

async function serve(): Promise<void> {
  server = new CommandUnderTest(
    place,
    ['serve', '--state', state, '--backend', 'simulated', '--gpu', '0'],
    build,
  );
  await server.printed('"msg":"serving"');
}

/** Kills gpu-proxy, and starts the next one. */
async function replace(): Promise<void> {
  server.process.kill('SIGKILL');
  await server.end();
  await serve();
}

async function create(memory: number): Promise<void> {
  await serve();
  const request = { memoryBytes: memory };
  ({ id, socketPath: socket } = await askNode(state, 'createAllocation', request));
}

function call(
  name: 'getAllocation' | 'suspendAllocation' | 'resumeAllocation',
): Promise<AllocationMessage> {
  return askNode(state, name, { id });
}

function look(): Promise<AllocationMessage> {
  return call('getAllocation');
}

describe('at a known step', () => {
  let workers: ObedientWorkers;
  let client: Socket;

  beforeEach(async () => {
    const directory = path.join(place.directory, 'build');
    workers = ObedientWorkers.inBuild(directory);
    build = { NVIDIA_VIRTUAL_BUILD: directory };
    await create(100 * MiB);
    client = createConnection(socket);
    client.on('error', () => {});
    await eventually(async () => expect((await look()).sessions).toHaveLength(1));
    // Once its memory can leave, the session has begun.
    workers.tell({ suspend: `done ${MiB}` });
    await call('suspendAllocation');
    await eventually(async () => expect((await look()).outBytes).toBe(MiB));
    await call('resumeAllocation');
    workers.forget();
    workers.tell({ suspend: `done ${5 * MiB}` });
  });
  afterEach(() => {
    client.destroy();
  });

  async function got(command: string): Promise<void> {
    await until(() => workers.commands.some((one) => one.startsWith(command)));
  }

  test.each(['suspend', 'leave'] as const)('all goes on after a kill in %s', async (command) => {
    workers.tell({ suspend: `done ${5 * MiB}`, [command]: null });
    const suspended = expect(call('suspendAllocation')).rejects.toThrow();
    await got(`1 ${command}`);
    workers.tell({ suspend: `done ${5 * MiB}` });
    await replace();
    await suspended;
    await got('1 resume');
    expect(await look()).toMatchObject({ suspended: false, outBytes: 0 });
    expect(await call('suspendAllocation')).toMatchObject({ suspended: true, outBytes: 5 * MiB });
  });

  test('memory stays out after a kill, and comes back after one in resume', async () => {
    await call('suspendAllocation');
    workers.tell({ suspend: 'done 0', resume: null });
    await replace();
    expect(await look()).toMatchObject({ state: 'MEMORY_STATE_OUT', outBytes: 5 * MiB });
    const resumed = expect(call('resumeAllocation')).rejects.toThrow();
    await got('1 resume');
    workers.tell({});
    await replace();
    await resumed;
    await eventually(async () =>
      expect(await look()).toMatchObject({ state: 'MEMORY_STATE_RESIDENT', outBytes: 0 }),
    );
    expect(workers.commands.filter((command) => command === '1 resume')).toHaveLength(2);
  });
});

test('programs keep their memory through kills at any moment', async () => {
  await create(512 * MiB);
  const programs = await Promise.all([
    KeepingProgram.start(socket, [200 * MiB, 100_000]),
    KeepingProgram.start(socket, [50 * MiB, 30 * MiB]),
  ]);
  try {
    for (let kill = 0; kill < 8; kill++) {
      for (const program of programs) program.ask();
      const cut = (call: Promise<unknown>) => call.catch(() => {});
      const moving = cut(call('suspendAllocation').then(() => call('resumeAllocation')));
      await delay(kill * 120);
      await replace();
      await moving;
      if ((await look()).suspended) await call('resumeAllocation');
      for (const program of programs) await program.right();
    }
  } finally {
    for (const program of programs) program.kill();
  }
});
