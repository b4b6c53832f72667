import {
  arenaPayers,
  canReadPayers,
  nodePayer,
} from '@nvidia-virtual/gpu-proxy/testing/page-payers';
import { TestNode } from '../cluster/test-node.js';
import { gpuUsage, podProblems } from './gpu-usage.js';
import { tenantPod } from './pods.js';
import { arenaHolders } from './processes.js';
import type { Scenario, Scene } from './scene.js';
import { runsUndisturbed } from './tenants.js';

const POD = 'leaves';

/** Problem of other systems: memory of a pod that does not compute cannot be used by others. */
export const suspension: Scenario = {
  name: 'suspension',
  beside: true,
  anywhere: true,
  about: 'who may edit a pod suspends and resumes it; its memory leaves, and it notices nothing',
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    // It is deleted while it is suspended, and cannot end by itself.
    const spec = { terminationGracePeriodSeconds: 1 };
    await tenants.apply(tenantPod(POD, { does: 'hold 64', slots: 2, spec }));
    await tenants.logUntil(POD, 'working');
    await bind(scene, 'view');
    const viewer = await cluster.kubeconfigAs('view', tenants.namespace);
    const refused = await gpuUsage(cluster, ['suspend', POD], viewer);
    tally.judge(
      'a user who may only view a pod cannot suspend it',
      refused.status === 1 && refused.output.includes('Permission denied') ? [] : [refused.output],
    );
    await judgeSuspension(scene);
  },
};

/** The user of this name gets the role of the same name in the namespace. */
function bind({ cluster, tenants }: Scene, role: string): Promise<string> {
  return cluster.kubectl(
    ...['-n', tenants.namespace, 'create', 'rolebinding', role],
    ...[`--clusterrole=${role}`, `--user=${role}`],
  );
}

async function judgeSuspension(scene: Scene): Promise<void> {
  const { cluster, tally, tenants } = scene;
  await bind(scene, 'edit');
  const editor = await cluster.kubeconfigAs('edit', tenants.namespace);
  const suspended = await gpuUsage(cluster, ['suspend', POD], editor);
  tally.judge(
    'a user who may edit it suspends it',
    suspended.output.startsWith(`${POD} is suspended`) ? [] : [suspended.output],
  );
  await tenants.event(POD, /is suspended by nvidia-virtual\/suspended/);
  tally.judge('its GPU memory is in host memory', await memoryProblems(scene, POD));
  judgePayer(scene);
  const before = await tenants.rounds(POD);
  await tenants.apply(tenantPod('beside', { does: 'once' }));
  const beside = await tenants.result('beside');
  const { output: shown } = await gpuUsage(cluster, ['--no-headers'], editor);
  tally.judge('its program waits, and another one computes', [
    ...(beside === 'right\n' ? [] : [`the other one printed ${beside}`]),
    ...((await tenants.rounds(POD)) === before ? [] : ['it has computed meanwhile']),
    ...(new RegExp(`^${POD} +Suspended `, 'm').test(shown) ? [] : [shown]),
  ]);

  const resumed = await gpuUsage(cluster, ['resume', POD], editor);
  if (resumed.status !== 0) throw new Error(resumed.output);
  await tenants.logUntil(POD, `${before + 20} rounds`);
  tally.judge(
    'resumed, it goes on with right results',
    runsUndisturbed(await tenants.pod(POD)) ? [] : [await tenants.describe(POD)],
  );
  await gpuUsage(cluster, ['suspend', POD], editor);
  await tenants.delete('pod', POD);
  tally.judge('a suspended pod is deleted', []);
}

/**
 * Waits until the usage API shows that GPU memory of the pod is out, all or a part of it.
 * @returns what it shows
 */
export async function memoryProblems(
  { tenants }: Scene,
  pod: string,
  part: 'all' | 'some' = 'all',
): Promise<string[]> {
  return podProblems(tenants, pod, ({ containers }) => {
    const { used = 0, out = 0, state } = containers[0]?.memory ?? {};
    // Memory leaves in whole pieces of 2 MiB. A small block counts as it is used.
    return state === 'out' && out > 0 && (part === 'some' || out >= used);
  });
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
