import { createConnection, type Socket } from 'node:net';
import path from 'node:path';
import { AdminClient } from '@nvidia-virtual/node-state/admin/client';
import type { AllocationMessage } from '@nvidia-virtual/node-state/admin/messages';
import { arbiterSocketIn } from '@nvidia-virtual/node-state/paths';
import { findProcess } from '@nvidia-virtual/service/process-table';
import { eventually, until } from '@nvidia-virtual/service/testing/eventually';
import { CommandUnderTest, Place } from '../testing/command-under-test.js';
import { ObedientWorkers } from '../testing/obedient-worker.js';

const MiB = 2 ** 20;

let place: Place;
let state: string;
let workers: ObedientWorkers;
let server: CommandUnderTest;
let client: Socket;
let id: string;

beforeEach(async () => {
  place = new Place();
  state = path.join(place.directory, 'state');
  workers = ObedientWorkers.inBuild(path.join(place.directory, 'build'));
  await serve();
  const admin = await AdminClient.connect(state);
  const made = await admin.call('createAllocation', { memoryBytes: 100 * MiB });
  admin.close();
  id = made.id;
  client = createConnection(made.socketPath);
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
afterEach(async () => {
  client.destroy();
  await eventually(async () => expect((await look()).sessions).toEqual([]));
  server.process.kill('SIGTERM');
  await server.end();
  const arbiter = findProcess('--socket', arbiterSocketIn(state));
  if (arbiter) process.kill(arbiter.pid);
  place.remove();
});

async function serve(): Promise<void> {
  const build = path.join(place.directory, 'build');
  const args = ['serve', '--state', state, '--backend', 'simulated', '--gpu', '0'];
  server = new CommandUnderTest(place, args, { NVIDIA_VIRTUAL_BUILD: build });
  await server.printed('"msg":"serving"');
}

/** Kills gpu-proxy, and starts the next one. */
async function replace(): Promise<void> {
  server.process.kill('SIGKILL');
  await server.end();
  await serve();
}

async function call(name: 'getAllocation' | 'suspendAllocation' | 'resumeAllocation') {
  const admin = await AdminClient.connect(state);
  try {
    return await admin.call(name, { id });
  } finally {
    admin.close();
  }
}

function look(): Promise<AllocationMessage> {
  return call('getAllocation');
}

async function got(command: string): Promise<void> {
  await until(() => workers.commands.some((one) => one.startsWith(command)));
}

test.each(['suspend', 'leave'] as const)('all goes on after a kill during %s', async (command) => {
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

test('memory stays out after a kill, and comes back after one during resume', async () => {
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
