import {
  arenaPayers,
  canReadPayers,
  nodePayer,
} from '@nvidia-virtual/gpu-proxy/testing/page-payers';
import type { PodGpuUsage } from '@nvidia-virtual/usage-api/resources';
import { lookUntil } from '../../processes.js';
import { TestNode } from '../cluster/test-node.js';
import { gpuUsage, gpuUsageJson } from './gpu-usage.js';
import { tenantPod } from './pods.js';
import { arenaHolders, killPart } from './processes.js';
import type { Scene } from './scene.js';
import { runsUndisturbed } from './tenants.js';

/**
 * Suspends and resumes a pod that computes, and deletes it while it is suspended. The user `viewer`
 * may view the namespace.
 */
export async function judgeSuspension(scene: Scene, pod: string): Promise<void> {
  const { cluster, tally, tenants } = scene;
  const viewer = await cluster.kubeconfigAs('viewer', tenants.namespace);
  const refused = await gpuUsage(cluster, ['suspend', pod], viewer);
  tally.judge(
    'a user who may only view a pod cannot suspend it',
    refused.status === 1 && refused.output.includes('Permission denied') ? [] : [refused.output],
  );

  await cluster.kubectl(
    ...['-n', tenants.namespace, 'create', 'rolebinding', 'editor'],
    ...['--clusterrole=edit', '--user=editor'],
  );
  const editor = await cluster.kubeconfigAs('editor', tenants.namespace);
  const suspended = await gpuUsage(cluster, ['suspend', pod], editor);
  tally.judge(
    'a user who may edit it suspends it',
    suspended.output.startsWith(`${pod} is suspended`) ? [] : [suspended.output],
  );
  await tenants.event(pod, /is suspended by nvidia-virtual\/suspended/);
  tally.judge('its GPU memory is in host memory', await memoryProblems(scene, pod));
  judgePayer(scene);
  const before = await tenants.rounds(pod);
  if (cluster instanceof TestNode) await killPart('gpu-proxy');
  else tally.skip('a restart of gpu-proxy', 'the node is another machine');
  await tenants.apply(tenantPod('beside', { does: 'once' }));
  const beside = await tenants.result('beside');
  const { output: shown } = await gpuUsage(cluster, ['--no-headers'], editor);
  tally.judge('its program waits, also while gpu-proxy restarts, and another one computes', [
    ...(beside === 'right\n' ? [] : [`the other one printed ${beside}`]),
    ...((await tenants.rounds(pod)) === before ? [] : ['it has computed meanwhile']),
    ...(new RegExp(`^${pod} +Suspended `, 'm').test(shown) ? [] : [shown]),
  ]);

  const resumed = await gpuUsage(cluster, ['resume', pod], editor);
  if (resumed.status !== 0) throw new Error(resumed.output);
  await tenants.logUntil(pod, `${before + 20} rounds`);
  tally.judge(
    'resumed, it goes on with right results',
    runsUndisturbed(await tenants.pod(pod)) ? [] : [await tenants.describe(pod)],
  );
  await gpuUsage(cluster, ['suspend', pod], editor);
  await tenants.delete('pod', pod);
  tally.judge('a suspended pod is deleted', []);
}

/**
 * Waits until the usage API shows that GPU memory of the pod is out, all or a part of it.
 * @returns what it shows
 */
export async function memoryProblems(
  { cluster, tenants }: Scene,
  pod: string,
  part: 'all' | 'some' = 'all',
): Promise<string[]> {
  const args = ['pod', pod, '-n', tenants.namespace];
  const look = async () => {
    const { value, output } = await gpuUsageJson<PodGpuUsage>(cluster, args);
    const { used = 0, out = 0, state } = value?.containers[0]?.memory ?? {};
    return state === 'out' && out > 0 && (part === 'some' || out === used) ? [] : [output];
  };
  return lookUntil(look, (problems) => problems.length === 0);
}

/** Requires that one session is suspended. */
function judgePayer({ cluster, tally }: Scene): void {
  const what = 'the node pays for that host memory';
  if (!(cluster instanceof TestNode && canReadPayers)) {
    tally.skip(what, 'the node is another machine, or its kernel does not tell');
    return;
  }
  const holders = arenaHolders();
  const payers = holders.flatMap((pid) => [...arenaPayers(pid)]);
  tally.judge(
    what,
    holders.length === 1 && payers.length === 1 && payers[0] === nodePayer()
      ? []
      : [`processes ${holders} have arenas, and cgroups ${payers} pay, not ${nodePayer()}`],
  );
}
