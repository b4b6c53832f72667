import type { V1Pod } from '@kubernetes/client-node';
import type { PodGpuUsage } from '@nvidia-virtual/usage-api/resources';
import { gpuUsageJson } from './gpu-usage.js';
import { tenantContainer, tenantPod } from './pods.js';
import type { Scenario, Scene } from './scene.js';

/** Fails the first time, and works from then on. */
const FAILS_ONCE =
  'test -e /scratch/failed || { touch /scratch/failed; /opt/programs/tenant once && exit 1; }; ' +
  'exec /opt/programs/tenant work';

const CONTAINERS = {
  restartPolicy: 'Always',
  initContainers: [
    tenantContainer('prepares', 3, 'once'),
    { ...tenantContainer('assists', 1, 'work'), restartPolicy: 'Always' },
  ],
  containers: [
    {
      ...tenantContainer('fails', 2, 'work', ['sh', '-c', FAILS_ONCE]),
      volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }],
    },
    tenantContainer('works', 1, 'work'),
  ],
  volumes: [{ name: 'scratch', emptyDir: {} }],
};

/**
 * Problem of other systems: init containers and sidecars are counted wrongly, and a restarted
 * container has lost its GPU.
 */
export const containers: Scenario = {
  name: 'containers',
  beside: true,
  anywhere: true,
  about:
    'a pod with an init container, a sidecar and two containers, one of which fails and ' +
    'restarts: each has its own part',
  async play(scene) {
    const { tally, tenants } = scene;
    await tenants.apply(tenantPod('several', { spec: CONTAINERS }));
    await tenants.until('several', 'running', ({ status }) => status?.phase === 'Running');
    tally.judge(
      'an init container computes',
      problemsOf(await tenants.logUntil('several', /./, 'prepares'), 'right\n'),
    );
    for (const name of ['assists', 'fails', 'works'])
      await tenants.logUntil('several', 'working', name);
    // The kubelet serves a log before the API server has the status.
    const { status } = await tenants.until('several', 'restarted', (pod) => restartsOf(pod) > 0);
    const restarts = status?.containerStatuses
      ?.map(({ name, restartCount }) => `${name} ${restartCount}`)
      .sort();
    tally.judge(
      'a container that failed starts again with its part',
      problemsOf(restarts?.join(), 'fails 1,works 0'),
    );
    tally.judge(
      'each container has its own part',
      problemsOf(await slots(scene), 'assists 1,fails 2,prepares 3,works 1'),
    );
    await tenants.delete('pod', 'several');
  },
};

function restartsOf({ status }: V1Pod): number {
  const counts = status?.containerStatuses?.map(({ restartCount }) => restartCount) ?? [];
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Figures of each container with slots, from `kubectl gpu-usage`. */
async function slots({ cluster, tenants }: Scene): Promise<string> {
  const { value, output } = await gpuUsageJson<PodGpuUsage>(cluster, [
    'pod',
    'several',
    '-n',
    tenants.namespace,
  ]);
  const shown = value?.containers.map(({ name, slots: count }) => `${name} ${count}`);
  return shown?.sort().join() ?? output;
}

function problemsOf(is: string | undefined, wanted: string): string[] {
  return is === wanted ? [] : [`it is ${is}, and not ${wanted}`];
}
