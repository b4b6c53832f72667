import { usageProblems } from './gpu-usage.js';
import { tenantDeployment } from './pods.js';
import { judgeLeavings } from './processes.js';
import { SLOTS, untilOffered, untilReady } from './product.js';
import type { NodeScenario } from './scene.js';

const REPLICAS = 4;

/** Problem of other systems: after a reboot GPU pods fail and are never retried. */
export const reboot: NodeScenario = {
  name: 'reboot',
  about:
    'the node loses every process, mount and network at once; ' +
    'controllers bring their pods back, and nothing leaks',
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    await tenants.apply(tenantDeployment('survives', REPLICAS, { slots: 2 }));
    await tenants.available('survives', REPLICAS);
    await cluster.loseNode();
    const boot = Math.floor(Date.now() / 1000) * 1000;
    await cluster.startNode();
    for (const part of ['node', 'webhook', 'scheduler']) await untilReady(cluster, part, boot);
    await untilOffered(cluster, SLOTS);
    await tenants.available('survives', REPLICAS);
    const running = (await tenants.pods()).filter(({ status }) => status?.phase === 'Running');
    for (const { metadata } of running) await tenants.logUntil(metadata?.name ?? '', 'working');
    tally.judge(
      'after a reboot a Deployment has its pods again',
      running.length === REPLICAS ? [] : [`${running.length} run`],
    );
    const slots = Object.fromEntries(running.map(({ metadata }) => [metadata?.name ?? '', 2]));
    tally.judge(
      'and kubectl gpu-usage shows them',
      await usageProblems(cluster, tenants.namespace, slots),
    );
    await tenants.delete('deployment', 'survives');
    await tenants.gone();
    await untilOffered(cluster, SLOTS);
    await judgeLeavings(scene);
  },
};
