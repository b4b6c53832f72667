import { createConnection } from 'node:net';
import path from 'node:path';
import { makeLyingBuild } from '@nvidia-virtual/gpu-proxy/testing/lying-worker';
import type { AllocationMessage } from '@nvidia-virtual/node-state/admin/messages';
import { fill } from './quota.js';
import { type Case, type Scene, startTenant } from './scene.js';

const MIB = 2 ** 20;
/** The worker recognizes the allocation in which it lies by this quota. */
const LIARS_QUOTA = 17 * MIB;
const TAKEN = 360 * MIB;
/** Does not fit beside the liar's memory. */
const NEIGHBOURS_QUOTA = 320 * MIB;
const ROUNDS = 5;

export const bypass: Case = {
  name: 'bypass',
  about:
    'a worker that uses memory without charging it is killed each time, ' +
    'and its neighbour gets its whole quota',
  environment: (directory) => ({
    NVIDIA_VIRTUAL_BUILD: makeLyingBuild(path.join(directory, 'build'), {
      quota: LIARS_QUOTA,
      taken: TAKEN,
    }),
    NVIDIA_VIRTUAL_SIMULATED_MEMORY: '512MiB',
    NVIDIA_VIRTUAL_SIMULATED_CONTEXT: '8MiB',
  }),
  async play(scene) {
    const { node, tally } = scene;
    const liar = await node.create({ name: 'liar', memoryBytes: LIARS_QUOTA });
    const neighbour = await node.create({ memoryBytes: NEIGHBOURS_QUOTA });
    const good = startTenant(scene, await node.create({ memoryBytes: 64 * MIB }), 'check');
    tally.judge('a tenant that behaves well', await good.goesOn());
    for (let round = 1; round <= ROUNDS; round++) {
      const ended = sentencesIn(node.log()).length;
      tally.judge(`lie ${round}`, await lie(scene, liar));
      tally.judge(
        `lie ${round}: the log`,
        sentencesIn(node.log()).length === ended + 1
          ? []
          : ['it does not say once that it ended the liar'],
      );
      const { pieces, process } = await fill(scene, neighbour);
      process.kill('SIGKILL');
      await node.until(neighbour, ({ sessions }) => sessions.length === 0);
      tally.judge(
        `lie ${round}: the neighbour`,
        pieces >= NEIGHBOURS_QUOTA / MIB - 2 ? [] : [`it got ${pieces} MiB`],
      );
      tally.judge(`lie ${round}: the others`, await good.goesOn());
    }
    tally.judge('the end of a tenant', await good.stop());
  },
};

/** A program of the liar, until its connection ends. */
async function lie({ node }: Scene, liar: AllocationMessage): Promise<string[]> {
  const client = createConnection(liar.socketPath);
  const closed = new Promise((resolve) => client.once('close', resolve));
  client.on('error', () => {}).resume();
  await closed;
  const { sessions } = await node.until(liar, (now) => now.sessions.length === 0);
  return sessions.length === 0
    ? []
    : [`a session of the liar goes on: ${JSON.stringify(sessions)}`];
}

function sentencesIn(log: string): string[] {
  return log.match(/were ended: according to NVML/g) ?? [];
}
