import { pause } from '../processes.js';
import { anotherArbiter, type Kind, type Party, replace, workerOf } from './kills.js';
import { type Case, type Scene, startTenant } from './scene.js';
import { disagreements } from './truth.js';

const MIB = 2 ** 20;
const SHARES = [20, 30, 50];
const LONGEST_PAUSE_MS = 20;
const KINDS: readonly Kind[] = ['client', 'worker', 'proxy', 'arbiter'];
/** One of so many suspensions is disturbed by a kill. */
const PER_KILL = 8;

export const suspensions: Case = {
  name: 'suspensions',
  about:
    'suspend and resume at random moments under load by three tenants, some with kill -9 of ' +
    'client, worker, proxy or arbiter meanwhile',
  options: ['--warm-workers', '1'],
  async play(scene) {
    const parties: Party[] = [];
    for (const sharePercent of SHARES) {
      const allocation = await scene.node.create({ memoryBytes: 96 * MIB, sharePercent });
      parties.push({ allocation, tenant: startTenant(scene, allocation, 'keep') });
    }
    for (const { tenant } of parties) scene.tally.judge('a tenant', await tenant.goesOn());
    const counts = new Map<string, number>();
    for (let i = 0; i < scene.suspensions; i++) {
      const party = parties[Math.floor(scene.random() * parties.length)] as Party;
      const kind = KINDS[Math.floor(scene.random() * PER_KILL * KINDS.length)];
      const what = kind === undefined ? 'nothing' : kind;
      counts.set(what, (counts.get(what) ?? 0) + 1);
      await pause(scene.random() * LONGEST_PAUSE_MS);
      const said = scene.node.log().length;
      const problems =
        kind === undefined
          ? await suspendOnce(scene, parties, party)
          : await disturbOnce(scene, parties, party, kind);
      scene.tally.judge(`suspension ${i + 1}, with a kill of ${what}`, problems);
      if (problems.length > 0)
        console.log(`The proxy said meanwhile:\n${scene.node.log().slice(said)}`);
    }
    console.log(`killed: ${[...counts].map(([kind, count]) => `${kind} ${count}`).join(', ')}`);
    for (const { tenant } of parties) scene.tally.judge('the end of a tenant', await tenant.stop());
    for (const { allocation } of parties)
      scene.tally.judge('an idle allocation', await disagreements(scene.node, allocation, []));
  },
};

/** @returns the problems */
async function suspendOnce(
  scene: Scene,
  parties: readonly Party[],
  { allocation, tenant }: Party,
): Promise<string[]> {
  const { node } = scene;
  await node.suspend(allocation);
  const { state, outBytes } = await node.look(allocation);
  const { calls } = tenant.entry;
  const others = parties.filter((party) => party.tenant !== tenant);
  const problems = await goOn(others);
  if (state !== 'MEMORY_STATE_OUT' || outBytes === 0)
    problems.push(`the suspended allocation is ${state}, and ${outBytes} bytes are out`);
  // Calls that need no answer still return; two rounds have one that does.
  if (tenant.entry.calls > calls + 10)
    problems.push(`a suspended program made ${tenant.entry.calls - calls} calls`);
  await node.resume(allocation);
  return [...problems, ...(await goOn(parties))];
}

/** Kills a process while the allocation is suspended, or resumed. @returns the problems */
async function disturbOnce(
  scene: Scene,
  parties: readonly Party[],
  party: Party,
  kind: Kind,
): Promise<string[]> {
  const { node } = scene;
  const { allocation, tenant } = party;
  const arbiter = node.arbiter();
  const worker = kind === 'worker' ? await workerOf(scene, party) : undefined;
  const failed: string[] = [];
  const moving = (async () => {
    await node.suspend(allocation);
    await node.resume(allocation);
  })().catch((error: Error) => failed.push(`suspending: ${error.message}`));
  await pause(scene.random() * 4 * LONGEST_PAUSE_MS);
  if (kind === 'client') tenant.kill();
  if (worker !== undefined) process.kill(worker, 'SIGKILL');
  if (kind === 'arbiter' && arbiter !== undefined) process.kill(arbiter, 'SIGKILL');
  if (kind === 'proxy') {
    await node.kill();
    await pause(scene.random() * LONGEST_PAUSE_MS);
    await node.start();
  }
  await moving;
  // The requests of a killed proxy have failed.
  const problems = kind === 'proxy' ? [] : failed;
  await node.resume(allocation);
  if (kind === 'client' || kind === 'worker')
    problems.push(...(await replace(scene, party, [kind], 'keep')));
  if (kind === 'arbiter') problems.push(...(await anotherArbiter(scene, arbiter)));
  problems.push(...(await goOn(parties)));
  for (const each of parties)
    problems.push(...(await disagreements(node, each.allocation, [each.tenant.pid])));
  return problems;
}

async function goOn(parties: readonly Party[]): Promise<string[]> {
  return (await Promise.all(parties.map(({ tenant }) => tenant.goesOn(5)))).flat();
}
