import { parseArgs } from 'node:util';
import { randomNumbers } from '@nvidia-virtual/service/testing/random';
import { compileProgram } from '../cuda-program.js';
import { Tally } from '../tally.js';
import { bypass } from './bypass.js';
import { gangs } from './gangs.js';
import { kills } from './kills.js';
import { malice } from './malice.js';
import { nested } from './nested.js';
import { quota } from './quota.js';
import { type Case, play, type Scene } from './scene.js';
import { sessions } from './sessions.js';
import { shares } from './shares.js';
import { sharing } from './sharing.js';
import { suspensions } from './suspensions.js';

/** Cases that compare GPU time, or load the whole machine. */
const ALONE: readonly Case[] = [sessions, shares, nested, gangs];
/** Cases that mostly wait. They run two at a time, the longest first. */
const TOGETHER: readonly Case[] = [kills, suspensions, malice, quota, sharing, bypass];
const CASES = [...ALONE, ...TOGETHER];

const HELP = `Tests many tenants on one simulated GPU: no tenant gets more than its allocation, \
or harms another.
  --only NAMES   only these cases, separated by commas
  --kills N      number of kills (default: 300)
  --suspensions N
                 number of suspensions (default: 500)
  --seed N       repeats the same moments (default: from the clock)
Cases:
${CASES.map(({ name, about }) => `  ${name.padEnd(10)} ${about}`).join('\n')}`;

type Counts = Pick<Scene, 'kills' | 'suspensions'>;

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    kills: { type: 'string', default: '300' },
    suspensions: { type: 'string', default: '500' },
    seed: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) console.log(HELP);
else
  process.exitCode = await main(
    chosen(values.only),
    { kills: Number(values.kills), suspensions: Number(values.suspensions) },
    Number(values.seed ?? Date.now() % 1_000_000),
  );

async function main(cases: readonly Case[], counts: Counts, seed: number): Promise<number> {
  const programs = {
    neighbour: await compileProgram('tenants', 'neighbour', ['-rdc=true', '-lcudadevrt']),
    quota: await compileProgram('tenants', 'quota'),
    heap: await compileProgram('tenants', 'heap'),
    sharing: await compileProgram('tenants', 'sharing'),
    // Its functions replace those of the C library also in libraries that it loads.
    malice: await compileProgram('tenants', 'malice', ['-Xlinker', '--export-dynamic']),
  };
  const tally = new Tally();
  console.log(`seed ${seed} (--seed ${seed} chooses the same moments again)`);
  const next = async (queue: Case[]) => {
    for (let one = queue.shift(); one; one = queue.shift()) {
      const begin = performance.now();
      await play(one, { programs, tally, ...counts, random: randomNumbers(seed) });
      console.log(`${one.name}: ${((performance.now() - begin) / 1000).toFixed(1)} s`);
    }
  };
  await next(cases.filter((one) => ALONE.includes(one)));
  const together = cases.filter((one) => TOGETHER.includes(one));
  await Promise.all([next(together), next(together)]);
  return tally.close();
}

function chosen(only: string | undefined): readonly Case[] {
  if (only === undefined) return CASES;
  const names = only.split(',');
  const unknown = names.filter((name) => !CASES.some((one) => one.name === name));
  if (unknown.length > 0)
    throw new Error(
      `there is no case ${unknown.join(', ')}; there are ` +
        `${CASES.map(({ name }) => name).join(', ')}`,
    );
  return CASES.filter(({ name }) => names.includes(name));
}
