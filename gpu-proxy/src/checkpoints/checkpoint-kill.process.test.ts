import { existsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { AdminCalls, AllocationMessage } from '@nvidia-virtual/node-state/admin/messages';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { askNode } from '../testing/ask-node.js';
import { CommandUnderTest, Place } from '../testing/command-under-test.js';
import { withCriu } from '../testing/criu.js';
import { killArbiter } from '../testing/kill-arbiter.js';
import { MovingProgram } from '../testing/moving-program.js';

const MiB = 2 ** 20;
/** A checkpoint, or a restoration, takes about so long. */
const WHOLE_MS = 2500;
const KILLS = 10;

let place: Place;
let state: string;
let server: CommandUnderTest;

beforeEach(async () => {
  place = new Place();
  state = path.join(place.directory, 'state');
  await serve();
});
afterEach(async () => {
  server.process.kill('SIGTERM');
  await server.end();
  killArbiter(state, 'SIGKILL');
  place.remove();
});

async function serve(): Promise<void> {
  const words = ['serve', '--state', state, '--backend', 'simulated'];
  server = new CommandUnderTest(place, words, {});
  await server.printed('"msg":"serving"');
}

function ask<Name extends keyof AdminCalls>(name: Name, request: AdminCalls[Name][0]) {
  return askNode(state, name, request);
}

withCriu('programs notice no kill of gpu-proxy at any moment', async () => {
  const { id, socketPath } = await ask('createAllocation', { memoryBytes: 512 * MiB });
  const files = path.join(place.directory, 'files');
  const look = () => ask('getAllocation', { id });
  const isSettled = ({ state: memory, checkpoint }: AllocationMessage) =>
    checkpoint !== '' || memory === 'MEMORY_STATE_RESIDENT';
  const programs = await Promise.all([
    MovingProgram.start(socketPath, 20 * MiB),
    MovingProgram.start(socketPath, 100_000),
  ]);
  let asks = false;
  try {
    for (let kill = 0; kill < KILLS; kill++) {
      if (!asks) for (const program of programs) program.ask();
      asks = true;
      const isInFile = (await look()).checkpoint !== '';
      const request = isInFile
        ? ask('restoreAllocation', { directory: files, key: '' })
        : ask('checkpointAllocation', { id, directory: files, key: '' });
      const asked = request.catch(() => {});
      await delay((kill * WHOLE_MS) / KILLS);
      server.process.kill('SIGKILL');
      await server.end();
      await asked;
      await serve();
      await eventually(async () => expect(isSettled(await look())).toBe(true));
      const { checkpoint, sessions } = await look();
      expect(sessions.length).toBe(2);
      expect(existsSync(files)).toBe(checkpoint !== '');
      if (checkpoint !== '' && kill % 2 === 0)
        await ask('restoreAllocation', { directory: files, key: '' });
      if ((await look()).checkpoint !== '') continue;
      for (const program of programs) await program.right();
      asks = false;
    }
  } finally {
    for (const program of programs) program.kill();
  }
  await eventually(async () => expect((await look()).sessions).toEqual([]));
});
