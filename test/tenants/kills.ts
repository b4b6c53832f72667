import type { AllocationMessage } from '@nvidia-virtual/node-state/admin/messages';
import { pause, until } from '../processes.js';
import { type Case, type Scene, startTenant } from './scene.js';
import type { Load, Tenant } from './tenant.js';
import { disagreements } from './truth.js';

const MIB = 2 ** 20;
const SHARES = [20, 30, 50];
const LONGEST_PAUSE_MS = 100;
/** Exit status of a program whose worker died: test/tenants/neighbour.cu. */
const SAW_AN_ERROR = 3;

export type Kind = 'client' | 'worker' | 'proxy' | 'arbiter';
/** Processes that are killed at once: a service alone, or together with a client or a worker. */
const COMBINATIONS: readonly (readonly Kind[])[] = [
  ['client'],
  ['worker'],
  ['proxy'],
  ['arbiter'],
  ['proxy', 'client'],
  ['proxy', 'worker'],
  ['arbiter', 'worker'],
  ['proxy', 'arbiter'],
];

/** An allocation, and the program in it. */
export interface Party {
  readonly allocation: AllocationMessage;
  tenant: Tenant;
}

export const kills: Case = {
  name: 'kills',
  about:
    'kill -9 of client, worker, proxy and arbiter at random moments under load by three tenants',
  options: ['--warm-workers', '1'],
  async play(scene) {
    const parties: Party[] = [];
    for (const sharePercent of SHARES) {
      const allocation = await scene.node.create({ memoryBytes: 64 * MIB, sharePercent });
      parties.push({ allocation, tenant: startTenant(scene, allocation, 'check') });
    }
    for (const { tenant } of parties) scene.tally.judge('a tenant', await tenant.goesOn());
    const counts = new Map<string, number>();
    for (let i = 0; i < scene.kills; i++) {
      const kinds = COMBINATIONS[
        Math.floor(scene.random() * COMBINATIONS.length)
      ] as readonly Kind[];
      const victim = parties[Math.floor(scene.random() * parties.length)] as Party;
      for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
      await pause(scene.random() * LONGEST_PAUSE_MS);
      const said = scene.node.log().length;
      const problems = await killOnce(scene, parties, victim, kinds);
      scene.tally.judge(`kill ${i + 1}, of ${kinds.join(' and ')}`, problems);
      if (problems.length > 0)
        console.log(`The proxy said meanwhile:\n${scene.node.log().slice(said)}`);
    }
    console.log(`killed: ${[...counts].map(([kind, count]) => `${kind} ${count}`).join(', ')}`);
    for (const { tenant } of parties) scene.tally.judge('the end of a tenant', await tenant.stop());
    for (const { allocation } of parties)
      scene.tally.judge('an idle allocation', await disagreements(scene.node, allocation, []));
  },
};

/**
 * Kills, checks all other programs, and runs the next program of the victim. @returns the problems
 */
async function killOnce(
  scene: Scene,
  parties: readonly Party[],
  victim: Party,
  kinds: readonly Kind[],
): Promise<string[]> {
  const { node } = scene;
  const victims = kinds.includes('client') || kinds.includes('worker') ? [victim] : [];
  const arbiter = node.arbiter();
  const worker = kinds.includes('worker') ? await workerOf(scene, victim) : undefined;
  if (kinds.includes('client')) victim.tenant.kill();
  if (worker !== undefined) process.kill(worker, 'SIGKILL');
  if (kinds.includes('arbiter') && arbiter !== undefined) process.kill(arbiter, 'SIGKILL');
  const problems: string[] = [];
  if (kinds.includes('proxy')) {
    await node.kill();
    await pause(scene.random() * LONGEST_PAUSE_MS);
    problems.push(...(await goOn(parties, victims)));
    await node.start();
  }
  problems.push(...(await goOn(parties, victims)));
  if (kinds.includes('arbiter')) problems.push(...(await anotherArbiter(scene, arbiter)));
  for (const party of victims) problems.push(...(await replace(scene, party, kinds)));
  for (const { allocation, tenant } of parties)
    problems.push(...(await disagreements(node, allocation, [tenant.pid])));
  return problems;
}

export async function workerOf({ node }: Scene, { allocation, tenant }: Party): Promise<number> {
  const { sessions } = await node.look(allocation);
  const session = sessions.find(({ pid }) => pid === tenant.pid);
  if (!session)
    throw new Error(
      `the node knows no session of process ${tenant.pid}: ${JSON.stringify(sessions)}`,
    );
  return session.workerPid;
}

async function goOn(parties: readonly Party[], victims: readonly Party[]): Promise<string[]> {
  const others = parties.filter((party) => !victims.includes(party));
  return (await Promise.all(others.map(({ tenant }) => tenant.goesOn()))).flat();
}

export async function anotherArbiter(
  { node }: Scene,
  killed: number | undefined,
): Promise<string[]> {
  if (killed === undefined) return ['there was no arbiter'];
  // One look: the killed one may be gone at a second look.
  const isBack = () => ![killed, undefined].includes(node.arbiter());
  return (await until(isBack)) ? [] : [`no arbiter took the place of process ${killed}`];
}

/**
 * The killed program has ended, a program whose worker was killed has seen an error, and another
 * one runs.
 */
export async function replace(
  scene: Scene,
  party: Party,
  kinds: readonly Kind[],
  load: Load = 'check',
): Promise<string[]> {
  const expected = kinds.includes('client') ? 'SIGKILL' : SAW_AN_ERROR;
  const ended = await party.tenant.ended();
  party.tenant = startTenant(scene, party.allocation, load);
  return [
    ...(ended === expected ? [] : [`the victim ended with ${ended ?? 'nothing: it hangs'}`]),
    ...(await party.tenant.goesOn()),
  ];
}
