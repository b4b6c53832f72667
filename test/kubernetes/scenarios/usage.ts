import type { PodGpuUsage } from '@nvidia-virtual/usage-api/resources';
import { lookUntil } from '../../processes.js';
import { gpuUsage, gpuUsageJson } from './gpu-usage.js';
import { tenantPod } from './pods.js';
import { SLOTS } from './product.js';
import type { Scenario, Scene } from './scene.js';
import { judgeSuspension } from './suspension.js';

const USED = 64;
const MIB = 2 ** 20;

/** Problem of other systems: figures of pods that share a GPU are missing or counted twice. */
export const usage: Scenario = {
  name: 'usage',
  anywhere: true,
  about:
    'kubectl gpu-usage shows what each pod holds and uses, and a tenant sees ' +
    'its own namespace only; it suspends and resumes a pod',
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    await tenants.apply(
      tenantPod('holds', { does: `hold ${USED}`, slots: 2 }),
      tenantPod('waits', { slots: SLOTS - 1 }),
    );
    await tenants.logUntil('holds', 'working');

    const holds = await untilShown(
      scene,
      'holds',
      ({ state, memory }) => state === 'Active' && memory >= USED * MIB,
    );
    tally.judge('a pod that works is Active, with the memory that it holds', holds);
    const waits = await untilShown(
      scene,
      'waits',
      ({ state, message }) => state === 'Waiting' && message.includes('Insufficient'),
    );
    tally.judge('a pod that waits is shown with the reason', waits);
    const { output } = await gpuUsage(cluster, ['nodes', '--no-headers']);
    const row = output.trim().split(/\s+/);
    tally.judge(
      'the node shows its free slots',
      row[0] === cluster.nodeName && row.includes(String(SLOTS - 2)) ? [] : [output],
    );

    tally.judge('a tenant sees its own namespace, and no other', await tenantView(scene));
    await tenants.delete('pod', 'waits');
    await judgeSuspension(scene, 'holds');
  },
};

interface Shown {
  readonly state: string;
  readonly message: string;
  /** Bytes. */
  readonly memory: number;
}

async function untilShown(
  { cluster, tenants }: Scene,
  pod: string,
  holds: (shown: Shown) => boolean,
): Promise<string[]> {
  const args = ['pod', pod, '-n', tenants.namespace];
  const look = async () => {
    const { value, output } = await gpuUsageJson<PodGpuUsage>(cluster, args);
    return value && holds(shownOf(value)) ? [] : [output];
  };
  return lookUntil(look, (problems) => problems.length === 0);
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
