import type { Cluster } from '../cluster/cluster.js';
import { usageProblems } from './gpu-usage.js';
import { tenantJob } from './pods.js';
import { partPods, SLOTS, untilOffered } from './product.js';
import { NAMESPACE } from './release.js';
import type { Scenario } from './scene.js';

const PODS = 100;
const PATIENCE_S = 400;

/**
 * Problem of other systems: pods fail with UnexpectedAdmissionError, or bind sequentially behind a
 * lock of the node.
 */
export const storm: Scenario = {
  name: 'storm',
  anywhere: true,
  about:
    `${PODS} pods at once through ${SLOTS} slots: every one runs, none is refused, ` +
    `nothing is left`,
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    const begin = performance.now();
    await tenants.apply(tenantJob('storm', PODS, PODS, { does: 'once' }));
    const arguments_ = [
      'wait',
      'job/storm',
      '--for=condition=complete',
      `--timeout=${PATIENCE_S}s`,
    ];
    const { status, output } = await cluster.tryKubectl(['-n', tenants.namespace, ...arguments_]);
    const pods = await tenants.pods();
    const unhappy = pods.filter((pod) => pod.status?.phase !== 'Succeeded').slice(0, 3);
    const told = await Promise.all(
      unhappy.map(({ metadata }) => tenants.describe(metadata?.name ?? '')),
    );
    tally.judge(
      `${PODS} pods through ${SLOTS} slots: every pod runs in the end`,
      status === 0 && pods.length === PODS ? [] : [output, ...told],
    );
    const refused = pods
      .filter((pod) => pod.status?.phase === 'Failed')
      .map((pod) => `${pod.metadata?.name}: ${pod.status?.message}`);
    tally.judge('none is refused at admission', refused);
    console.log(
      `${PODS} pods, ${SLOTS} at a time: ${((performance.now() - begin) / 1000).toFixed(0)} s; ` +
        `${await allocateTimes(cluster)}`,
    );
    tally.judge(
      'and kubectl gpu-usage shows none of them any more',
      await usageProblems(cluster, tenants.namespace, {}),
    );
    await tenants.delete('job', 'storm');
    await untilOffered(cluster, SLOTS);
  },
};

/** How long the kubelet waited for Allocate, from the plugin's metric. */
async function allocateTimes(cluster: Cluster): Promise<string> {
  const [pod] = await partPods(cluster, 'node');
  const ports = pod?.spec?.containers.flatMap((container) => container.ports ?? []) ?? [];
  const port = ports.find(({ name }) => name === 'plugin-metrics')?.containerPort;
  const metrics = await cluster.kubectl(
    'get',
    '--raw',
    `/api/v1/namespaces/${NAMESPACE}/pods/${pod?.metadata?.name}:${port}/proxy/metrics`,
  );
  const buckets = metrics
    .split('\n')
    .filter((line) => line.startsWith('nvidia_virtual_plugin_allocate_seconds_bucket'));
  const count = (bound: string) =>
    buckets
      .find((line) => line.includes(`le="${bound}"`))
      ?.split(' ')
      .at(-1);
  return `of ${count('+Inf')} calls of Allocate ${count('0.1')} took less than 100 ms`;
}
