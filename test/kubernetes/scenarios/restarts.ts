import type { TestNode } from '../cluster/test-node.js';
import { usageProblems } from './gpu-usage.js';
import { tenantPod } from './pods.js';
import { killPart, type Part } from './processes.js';
import { restartProduct, SLOTS, untilOffered, untilReady } from './product.js';
import type { NodeScenario, NodeScene } from './scene.js';
import { runsUndisturbed } from './tenants.js';

const TENANTS = ['ada', 'bob', 'cleo'];
/** The kubelet has a scenario of its own. */
const DAEMONS = ['containerd', 'kube-proxy'] as const;
/** Killed one after the other; those that wait for nothing of each other, together. */
const KILLED: readonly (readonly Part[])[] = [
  ['device plugin', 'extender'],
  ['gpu-proxy', 'scheduler'],
  ['arbiter', 'redis'],
  ['webhook', 'usage API'],
];

/**
 * Problems of other systems: a restart of kubelet or plugin kills GPU pods; an unavailable
 * datastore stops everything.
 */
export const restarts: NodeScenario = {
  name: 'restarts',
  about:
    'each daemon is killed under load, and the whole product restarted: ' +
    'no running container fails, and new pods run afterwards',
  async play(scene) {
    const { cluster, tenants } = scene;
    await tenants.apply(...TENANTS.map((name) => tenantPod(name)));
    await Promise.all(TENANTS.map((name) => tenants.logUntil(name, 'working')));
    await tryKilling(scene, DAEMONS, (daemon) => restart(cluster, daemon));
    for (const parts of KILLED) await tryKilling(scene, parts, killPart);
    await interrupt(scene, 'everything was restarted', () => restartProduct(cluster));
    await tenants.delete('pod', ...TENANTS);
    await untilOffered(cluster, SLOTS);
  },
};

async function tryKilling<T extends string>(
  scene: NodeScene,
  what: readonly T[],
  kill: (one: T) => Promise<void>,
): Promise<void> {
  const verb = what.length > 1 ? 'were' : 'was';
  await interrupt(scene, `${what.join(' and ')} ${verb} killed`, async () => {
    await Promise.all(what.map((one) => kill(one)));
  });
}

async function interrupt(
  { cluster, tally, tenants }: NodeScene,
  what: string,
  happen: () => Promise<void>,
): Promise<void> {
  const before = await Promise.all(TENANTS.map((name) => tenants.rounds(name)));
  await happen();
  await untilOffered(cluster, SLOTS);
  await untilReady(cluster, 'node');
  const name = `after-${what.toLowerCase().replaceAll(/\W/g, '-')}`;
  const [problems, printed] = await Promise.all([
    disturbances(tenants, before),
    tenants.applyOnceAdmitted(tenantPod(name, { does: 'once' })).then(() => tenants.result(name)),
  ]);
  tally.judge(`${what}: no running container fails`, problems);
  tally.judge(
    `${what}: a new pod runs afterwards`,
    printed === 'right\n' ? [] : [`it printed ${printed}`, await tenants.describe(name)],
  );
  const slots = Object.fromEntries(TENANTS.map((tenant) => [tenant, 1]));
  tally.judge(
    `${what}: kubectl gpu-usage is right`,
    await usageProblems(cluster, tenants.namespace, slots),
  );
  await tenants.forget(name);
}

/** All pods continue to compute, without a restart of a container. */
async function disturbances(
  tenants: NodeScene['tenants'],
  before: readonly number[],
): Promise<string[]> {
  const problems = await Promise.all(
    TENANTS.map(async (name, index) => {
      if (!runsUndisturbed(await tenants.pod(name)))
        return [`${name} was disturbed: ${await tenants.describe(name)}`];
      await tenants.logUntil(name, `${(before[index] as number) + 20} rounds`);
      return [];
    }),
  );
  return problems.flat();
}

async function restart(cluster: TestNode, name: (typeof DAEMONS)[number]): Promise<void> {
  if (name === 'containerd') return cluster.restartRuntime();
  const daemon = cluster.daemon(name);
  await daemon.kill();
  daemon.start();
}
