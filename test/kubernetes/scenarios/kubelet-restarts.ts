import { usageProblems } from './gpu-usage.js';
import { tenantPod } from './pods.js';
import { judgeLeavings } from './processes.js';
import { SLOTS, untilOffered } from './product.js';
import { untilRegistered } from './registration.js';
import type { NodeScenario, NodeScene } from './scene.js';
import { runsUndisturbed } from './tenants.js';

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
    tally.judge(
      `${RESTARTS} restarts of the kubelet: new pods run`,
      rounds.flatMap(({ problems }) => problems),
    );
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
    await judgeLeavings(scene);
  },
};

interface Round {
  /** Milliseconds from the kubelet's socket to the registration of the plugin. */
  readonly gap: number;
  /** Pods that the kubelet itself refused at first. */
  readonly refused: number;
  readonly problems: readonly string[];
}

/** Creates pods as a Deployment would, one after the other, until one runs. */
async function restart({ cluster, tenants }: NodeScene, round: number): Promise<Round> {
  const before = Date.now();
  await cluster.daemon('kubelet').kill();
  cluster.daemon('kubelet').start();
  const gap = await untilRegistered(before);
  let refused = 0;
  let ran = false;
  for (let number = 0; !ran && number < MOST_TRIES; number++) {
    const name = `round-${round}-${number}`;
    await tenants.apply(tenantPod(name, { does: 'once' }));
    const printed = await tenants.result(name);
    const { status } = await tenants.pod(name);
    if (printed === 'right\n') ran = true;
    else if (STILL_COUNTS_THE_GONE.test(status?.message ?? '')) refused++;
    else
      return {
        gap,
        refused,
        problems: [`round ${round}: ${printed}\n${await tenants.describe(name)}`],
      };
    await tenants.forget(name);
  }
  return {
    gap,
    refused,
    problems: !ran ? [`round ${round}: ${refused} pods were refused, and none ran`] : [],
  };
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
