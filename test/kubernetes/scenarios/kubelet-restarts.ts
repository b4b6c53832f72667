import { lookUntil } from '../../processes.js';
import { usageProblems } from './gpu-usage.js';
import { hasPrinted } from './node-log.js';
import { tenantPod } from './pods.js';
import { SLOTS, untilOffered } from './product.js';
import { untilRegistered } from './registration.js';
import type { NodeScenario, NodeScene } from './scene.js';
import { runsUndisturbed, type Tenants } from './tenants.js';

const RESTARTS = 20;
const MOST_TRIES = 20;
/**
 * Messages of a kubelet about pods in its first list: until it has seen all pods that should run,
 * the slots of deleted pods count as used. Its messages without a registered plugin do not count:
 * the pods here start after the registration.
 */
const STILL_COUNTS_THE_GONE = /requested number of devices unavailable/;

/**
 * Problem of other systems: pods fail with UnexpectedAdmissionError, and a restart of the kubelet
 * kills running ones.
 */
export const kubeletRestarts: NodeScenario = {
  name: 'kubelet-restarts',
  about:
    `${RESTARTS} restarts of the kubelet in a row: running pods continue, ` +
    'and no pod is refused after the plugin has registered',
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    await tenants.apply(tenantPod('steady', { slots: 2 }));
    await tenants.logUntil('steady', 'working');
    const rounds: Round[] = [];
    for (let number = 0; number < RESTARTS; number++) rounds.push(await restart(scene, number));
    const problems = await Promise.all(rounds.map((round) => round.problems));
    tally.judge(`${RESTARTS} restarts of the kubelet: new pods run`, problems.flat());
    const steady = await tenants.pod('steady');
    tally.judge(
      'and the one that ran goes on',
      runsUndisturbed(steady) ? [] : [await tenants.describe('steady')],
    );
    tally.judge(
      'and kubectl gpu-usage shows it alone',
      await usageProblems(cluster, tenants.namespace, { steady: 2 }),
    );
    report(rounds);
    await tenants.delete('pod', 'steady');
    await untilOffered(cluster, SLOTS);
  },
};

interface Round {
  /** Milliseconds from the kubelet's socket to the registration of the plugin. */
  readonly gap: number;
  /** Pods that the kubelet itself refused at first. */
  readonly refused: number;
  /** Known when the kubelet has reported the end of the pod, which may be one of a later round. */
  readonly problems: Promise<readonly string[]>;
}

/**
 * Creates pods as a Deployment would, one after the other, until one runs. Does not wait for a
 * kubelet that has seen its end.
 */
async function restart({ cluster, tenants }: NodeScene, round: number): Promise<Round> {
  const before = Date.now();
  await cluster.daemon('kubelet').kill();
  cluster.daemon('kubelet').start();
  const gap = await untilRegistered(before);
  for (let refused = 0; refused < MOST_TRIES; refused++) {
    const name = `round-${round}-${refused}`;
    await tenants.apply(tenantPod(name, { does: 'once' }));
    const message = await untilRan(tenants, name);
    if (!STILL_COUNTS_THE_GONE.test(message ?? ''))
      return { gap, refused, problems: judgeEnd(tenants, name).catch((error) => [String(error)]) };
    await tenants.forget(name);
  }
  const problems = Promise.resolve([
    `round ${round}: ${MOST_TRIES} pods were refused, and none ran`,
  ]);
  return { gap, refused: MOST_TRIES, problems };
}

/**
 * Waits until the pod has computed or failed. A kubelet says ten seconds earlier in an event than
 * in the pod's status that it refuses the pod. @returns the kubelet's message if it failed
 */
async function untilRan(tenants: Tenants, name: string): Promise<string | undefined> {
  const look = async () => {
    const hasComputed = hasPrinted(tenants.namespace, name, 'right');
    const told = (await tenants.events(name)).map((event) => event.message ?? '');
    const refusal = told.find((message) => STILL_COUNTS_THE_GONE.test(message));
    const { phase, message } = (await tenants.pod(name)).status ?? {};
    return { hasComputed, hasFailed: phase === 'Failed', refusal, message };
  };
  const { refusal, message } = await lookUntil(
    look,
    (seen) => seen.hasComputed || seen.hasFailed || seen.refusal !== undefined,
    { everyMs: 100 },
  );
  return refusal ?? message;
}

async function judgeEnd(tenants: Tenants, name: string): Promise<string[]> {
  await tenants.result(name);
  // The next restart may have interrupted the kubelet's answer.
  const printed = await lookUntil(
    () => tenants.log(name),
    (log) => log === 'right\n',
  );
  if (printed !== 'right\n') return [`${name}: ${printed}\n${await tenants.describe(name)}`];
  await tenants.forget(name);
  return [];
}

function report(rounds: readonly Round[]): void {
  const gaps = rounds.map(({ gap }) => gap).sort((a, b) => a - b);
  const refused = rounds.reduce((sum, round) => sum + round.refused, 0);
  console.log(
    `from the kubelet's socket to the plugin's registration, in ms: ` +
      `${gaps.map((gap) => Math.round(gap)).join(' ')}`,
  );
  console.log(`${refused} pods came before the kubelet had forgotten those that are gone`);
}
