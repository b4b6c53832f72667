import { usageProblems } from './gpu-usage.js';
import { RESOURCE, tenantDeployment, tenantPod } from './pods.js';
import { SLOTS, untilOffered } from './product.js';
import type { Scenario, Scene } from './scene.js';

export const full: Scenario = {
  name: 'full',
  anywhere: true,
  about:
    'a Deployment fills the GPU, one more pod waits with a reason, and deletion frees slots; ' +
    'a ResourceQuota counts slots',
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    await tenants.apply(tenantDeployment('crowd', SLOTS / 2, { slots: 2 }));
    await tenants.available('crowd', SLOTS / 2);
    tally.judge('a Deployment fills the GPU', []);

    await tenants.apply(tenantPod('late'));
    await tenants.event('late', /Insufficient nvidia-virtual\/gpu/);
    tally.judge('one pod more waits with a clear event', []);
    const crowd = (await tenants.pods())
      .map(({ metadata }) => metadata?.name ?? '')
      .filter((name) => name !== 'late');
    const slots = Object.fromEntries(crowd.map((name) => [name, 2]));
    tally.judge(
      'and kubectl gpu-usage shows them all',
      await usageProblems(cluster, tenants.namespace, slots, ['late']),
    );

    await tenants.cluster.kubectl(
      '-n',
      tenants.namespace,
      'scale',
      'deployment/crowd',
      `--replicas=${SLOTS / 2 - 1}`,
    );
    await tenants.logUntil('late', 'working');
    tally.judge('deletion frees slots', []);
    await tenants.delete('deployment/crowd', 'pod/late');
    await tenants.gone();
    await untilOffered(cluster, SLOTS);
    await keepQuota(scene);
  },
};

/** A ResourceQuota may allow a namespace fewer slots than there are. */
async function keepQuota({ cluster, tally, tenants }: Scene): Promise<void> {
  const hard = { [`requests.${RESOURCE}`]: '2' };
  await tenants.apply({
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'gpus' },
    spec: { hard },
  });
  const counted = `jsonpath={.status.used.requests\\.${RESOURCE}}=0`;
  await cluster.kubectl(
    '-n',
    tenants.namespace,
    'wait',
    'resourcequota/gpus',
    `--for=${counted}`,
    '--timeout=120s',
  );
  const create = (name: string, slots: number) =>
    cluster.tryKubectl([
      '-n',
      tenants.namespace,
      'apply',
      '-f',
      cluster.write([tenantPod(name, { slots })]),
    ]);
  const [within, beyond] = [await create('within', 2), await create('beyond', 1)];
  const right =
    within.status === 0 && /exceeded quota.*requests.nvidia-virtual\/gpu=1/.test(beyond.output);
  tally.judge('a ResourceQuota counts slots', right ? [] : [within.output, beyond.output]);
  await tenants.delete('pod/within', 'resourcequota/gpus');
}
