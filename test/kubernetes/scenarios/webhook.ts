import { until } from '../../processes.js';
import { usageProblems } from './gpu-usage.js';
import { ordinaryPod, tenantPod } from './pods.js';
import { partPods, untilReady } from './product.js';
import { NAMESPACE, RELEASE } from './release.js';
import type { Scenario, Scene } from './scene.js';

/**
 * Problem of other systems: an unavailable webhook blocks the whole cluster, or admits pods
 * unchanged.
 */
export const webhook: Scenario = {
  name: 'webhook',
  anywhere: true,
  about:
    'contradictions are refused with a message; while the webhook is down, ' +
    'pods without GPUs are created',
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    const wrong = tenantPod('wrong', { annotations: { 'nvidia-virtual/cores': '400' } });
    const contradiction = await tryCreating(scene, wrong);
    tally.judge(
      'a contradiction is refused with a sentence',
      /nvidia-virtual\/cores.*1 to 100/.test(contradiction) ? [] : [contradiction],
    );

    const forged = tenantPod('forged', {
      annotations: { 'nvidia-virtual/assigned': '{"version":1,"containers":{}}' },
    });
    const forgery = await tryCreating(scene, forged);
    tally.judge(
      'nobody assigns a GPU by hand',
      /nvidia-virtual\/assigned/.test(forgery) ? [] : [forgery],
    );

    await tenants.apply(tenantPod('works'));
    await tenants.logUntil('works', 'working');
    await scale(scene, 0);
    await tenants.apply(ordinaryPod('ordinary', ['/bin/true']));
    await tenants.result('ordinary');
    tally.judge('while the webhook is away, other pods are created', []);
    tally.judge(
      'and kubectl gpu-usage is right',
      await usageProblems(cluster, tenants.namespace, { works: 1 }),
    );
    const refusal = await tryCreating(scene, tenantPod('asks'));
    tally.judge(
      'and one that asks for a GPU is refused, not let through as it is',
      /webhook/.test(refusal) ? [] : [refusal],
    );

    await scale(scene, 2);
    await untilReady(cluster, 'webhook');
    await tenants.applyOnceAdmitted(tenantPod('asks', { does: 'once' }));
    const printed = await tenants.result('asks');
    tally.judge('when it is back, that pod runs', printed === 'right\n' ? [] : [printed]);
    await tenants.delete('pod', 'works');
  },
};

/** The message of the refusal; `created` if there was none. */
async function tryCreating({ cluster, tenants }: Scene, pod: object): Promise<string> {
  const { status, output } = await cluster.tryKubectl([
    '-n',
    tenants.namespace,
    'apply',
    '-f',
    cluster.write([pod]),
  ]);
  return status === 0 ? `created: ${output}` : output;
}

async function scale({ cluster }: Scene, replicas: number): Promise<void> {
  await cluster.kubectl(
    '-n',
    NAMESPACE,
    'scale',
    `deployment/${RELEASE}-webhook`,
    `--replicas=${replicas}`,
  );
  let count = -1;
  const look = () => void partPods(cluster, 'webhook').then((pods) => (count = pods.length));
  const timer = setInterval(look, 200);
  await until(() => count === replicas);
  clearInterval(timer);
}
