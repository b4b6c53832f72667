import { lookUntil } from '../../processes.js';
import { gpuUsage, usageProblems } from './gpu-usage.js';
import { tenantDeployment } from './pods.js';
import { SLOTS, untilOffered, untilReady } from './product.js';
import type { NodeScenario, Scene } from './scene.js';

const REPLICAS = 4;

/** Problem of other systems: after a reboot GPU pods fail and are never retried. */
export const reboot: NodeScenario = {
  name: 'reboot',
  about:
    'the node loses every process, mount and network at once; ' +
    'controllers bring their pods back, a suspended pod waits, and nothing leaks',
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    const annotations = { 'nvidia-virtual/suspended': 'true' };
    await tenants.apply(
      tenantDeployment('survives', REPLICAS, { slots: 2 }),
      tenantDeployment('waits', 1, { slots: 2, annotations }),
    );
    await tenants.available('survives', REPLICAS);
    await tenants.available('waits', 1);
    await cluster.loseNode();
    const boot = Math.floor(Date.now() / 1000) * 1000;
    await cluster.startNode();
    for (const part of ['node', 'webhook', 'scheduler']) await untilReady(cluster, part, boot);
    await untilOffered(cluster, SLOTS);
    await tenants.available('survives', REPLICAS);
    await tenants.available('waits', 1);
    const [running, waiting] = [await namesOf(scene, 'survives'), await namesOf(scene, 'waits')];
    for (const name of running) await tenants.logUntil(name, 'working');
    tally.judge(
      'after a reboot a Deployment has its pods again',
      running.length === REPLICAS ? [] : [`${running.length} run`],
    );
    tally.judge('and a suspended pod waits, until it is resumed', await waitingProblems(scene));
    const slots = Object.fromEntries([...running, ...waiting].map((name) => [name, 2]));
    tally.judge(
      'and kubectl gpu-usage shows them',
      await usageProblems(cluster, tenants.namespace, slots),
    );
    await tenants.delete('deployment', 'survives', 'waits');
    await tenants.gone();
    await untilOffered(cluster, SLOTS);
  },
};

/** The running pods of a Deployment. */
async function namesOf({ tenants }: Scene, deployment: string): Promise<string[]> {
  const pods = (await tenants.pods()).filter(
    ({ metadata, status }) =>
      metadata?.labels?.['app'] === deployment && status?.phase === 'Running',
  );
  return pods.map(({ metadata }) => metadata?.name ?? '');
}

async function waitingProblems(scene: Scene): Promise<string[]> {
  const { cluster, tenants } = scene;
  const [name = 'none'] = await namesOf(scene, 'waits');
  const inPlace = ['-n', tenants.namespace];
  const look = async () => (await gpuUsage(cluster, ['pod', name, ...inPlace])).output;
  const isSuspended = (output: string) => /^State: +Suspended$/m.test(output);
  const shown = await lookUntil(look, isSuspended);
  const log = await tenants.log(name);
  const resumed = await gpuUsage(cluster, ['resume', name, ...inPlace]);
  if (resumed.status === 0) await tenants.logUntil(name, 'working');
  return [
    ...(isSuspended(shown) ? [] : [shown]),
    ...(log === '' ? [] : [`it printed ${log}`]),
    ...(resumed.status === 0 ? [] : [resumed.output]),
  ];
}
