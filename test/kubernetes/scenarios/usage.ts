import type { PodGpuUsage } from '@nvidia-virtual/usage-api/resources';
import { gpuUsage, nodeProblems, podProblems } from './gpu-usage.js';
import { tenantPod } from './pods.js';
import { SLOTS } from './product.js';
import type { Scenario, Scene } from './scene.js';

const USED = 64;
const MIB = 2 ** 20;

/** Problem of other systems: figures of pods that share a GPU are missing or counted twice. */
export const usage: Scenario = {
  name: 'usage',
  anywhere: true,
  beside: true,
  about:
    'kubectl gpu-usage shows what each pod holds and uses, and a tenant sees ' +
    'its own namespace only',
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    await tenants.apply(
      tenantPod('holds', { does: `hold ${USED}`, slots: 2 }),
      tenantPod('waits', { slots: SLOTS - 1 }),
    );
    await tenants.logUntil('holds', 'working');

    const holds = await podProblems(tenants, 'holds', (pod) => {
      const { state, memory } = shownOf(pod);
      return state === 'Active' && memory >= USED * MIB;
    });
    tally.judge('a pod that works is Active, with the memory that it holds', holds);
    const waits = await podProblems(tenants, 'waits', (pod) => {
      const { state, message } = shownOf(pod);
      return state === 'Waiting' && message.includes('Insufficient');
    });
    tally.judge('a pod that waits is shown with the reason', waits);
    tally.judge('the node shows its free slots', await nodeProblems(cluster));

    tally.judge('a tenant sees its own namespace, and no other', await tenantView(scene));
    await tenants.delete('pod', 'waits', 'holds');
  },
};

interface Shown {
  readonly state: string;
  readonly message: string;
  /** Bytes. */
  readonly memory: number;
}

function shownOf({ state, message = '', containers }: PodGpuUsage): Shown {
  return {
    state,
    message,
    memory: containers.reduce((sum, { memory }) => sum + (memory.used ?? 0), 0),
  };
}

/** A user with the view role in the namespace. */
async function tenantView({ cluster, tenants }: Scene): Promise<string[]> {
  await cluster.kubectl(
    '-n',
    tenants.namespace,
    'create',
    'rolebinding',
    'viewer',
    '--clusterrole=view',
    '--user=viewer',
  );
  const kubeconfig = await cluster.kubeconfigAs('viewer', tenants.namespace);
  const own = await gpuUsage(cluster, ['-o', 'name'], kubeconfig);
  const all = await gpuUsage(cluster, ['-A'], kubeconfig);
  const nodes = await gpuUsage(cluster, ['nodes'], kubeconfig);
  return [
    ...(own.status === 0 && own.output.includes('holds')
      ? []
      : [`in its own namespace it sees ${own.output}`]),
    ...[all, nodes]
      .filter(({ status }) => status === 0)
      .map(({ output }) => `it also sees ${output}`),
  ];
}
