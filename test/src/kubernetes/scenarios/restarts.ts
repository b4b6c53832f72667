import type { Cluster } from '../cluster/cluster.js';
import { tenantPod } from './pods.js';
import { killPart, PARTS, type Part } from './processes.js';
import { SLOTS, untilOffered, untilReady } from './product.js';
import type { Scenario, Scene } from './scene.js';
import { runsUndisturbed } from './tenants.js';

const TENANTS = ['ada', 'bob', 'cleo'];
const DAEMONS = ['kubelet', 'containerd', 'kube-proxy'] as const;

/** Issues of other systems: a restart of kubelet or plugin kills GPU pods; a datastore that is away takes everything along. */
export const restarts: Scenario = {
  name: 'restarts',
  about: 'each daemon killed under load: no running container fails, and new pods run afterwards',
  async play(scene) {
    const { cluster, tenants } = scene;
    await tenants.apply(...TENANTS.map((name) => tenantPod(name)));
    await Promise.all(TENANTS.map((name) => tenants.logUntil(name, 'working')));
    for (const daemon of DAEMONS) await tryKilling(scene, daemon, () => restart(cluster, daemon));
    for (const part of Object.keys(PARTS) as Part[]) await tryKilling(scene, part, () => killPart(part));
    await tenants.delete('pod', ...TENANTS);
    await untilOffered(cluster, SLOTS);
  },
};

async function tryKilling({ cluster, tally, tenants }: Scene, what: string, kill: () => Promise<void>): Promise<void> {
  const before = await Promise.all(TENANTS.map((name) => tenants.rounds(name)));
  await kill();
  await untilOffered(cluster, SLOTS);
  await untilReady(cluster, 'node');
  const problems = await disturbances(tenants, before);
  tally.judge(`${what} was killed: no running container fails`, problems);
  const name = `after-${what.replaceAll(/\W/g, '-')}`;
  await tenants.apply(tenantPod(name, { does: 'once' }));
  const printed = await tenants.result(name);
  tally.judge(
    `${what} was killed: a new pod runs afterwards`,
    printed === 'right\n' ? [] : [`it printed ${printed}`, await tenants.describe(name)],
  );
  await tenants.forget(name);
}

/** Everybody goes on computing, and was never started again. */
async function disturbances(tenants: Scene['tenants'], before: readonly number[]): Promise<string[]> {
  const problems: string[] = [];
  for (const [index, name] of TENANTS.entries()) {
    const pod = await tenants.pod(name);
    if (!runsUndisturbed(pod)) problems.push(`${name} was disturbed: ${await tenants.describe(name)}`);
    else await tenants.logUntil(name, `${(before[index] as number) + 20} rounds`);
  }
  return problems;
}

async function restart(cluster: Cluster, name: (typeof DAEMONS)[number]): Promise<void> {
  if (name === 'kubelet') return cluster.restartKubelet();
  if (name === 'containerd') return cluster.restartRuntime();
  const daemon = cluster.daemon(name);
  await daemon.kill();
  daemon.start();
}
