import { existsSync } from 'node:fs';
import { lookUntil } from '../../processes.js';
import { STATE_ROOT } from '../cluster/places.js';
import { usageProblems } from './gpu-usage.js';
import { tenantPod } from './pods.js';
import { allocations, workers } from './processes.js';
import { partPods, SLOTS, untilOffered, untilReady } from './product.js';
import { NAMESPACE } from './release.js';
import type { NodeScenario, NodeScene } from './scene.js';
import { runsUndisturbed } from './tenants.js';

/** Name of the pod that is saved. */
export const SAVED = 'saved';
const FILES = `${STATE_ROOT}/state/checkpoints/${SAVED}`;

/** Problem of other systems: to replace the driver of a node ends all programs of its GPUs. */
export const checkpoint: NodeScenario = {
  name: 'checkpoint',
  about: 'a pod that computes goes to a file and back, after its worker and the node’s pod ended',
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    await tenants.apply(tenantPod(SAVED, { does: 'keep 2' }));
    await tenants.logUntil(SAVED, 'working');
    const [id = ''] = allocations();
    const lost = await onNode(scene, 'checkpoint', id, '/tmp/saved');
    tally.judge(
      'a directory of the container is refused',
      lost.status !== 0 && lost.output.includes(`${STATE_ROOT}/state/checkpoints`)
        ? []
        : [lost.output],
    );
    await judgeSave(scene);
    const rounds = await tenants.rounds(SAVED);
    await replaceNodePod(scene);
    await judgeRestore(scene, 'another pod of the node restores it');
    await tenants.logUntil(SAVED, `${rounds + 20} rounds`);
    tally.judge('it goes on with right results at the same addresses', [
      ...(runsUndisturbed(await tenants.pod(SAVED)) ? [] : [await tenants.describe(SAVED)]),
      ...(await usageProblems(cluster, tenants.namespace, { [SAVED]: 1 })),
    ]);
    await tenants.delete(`pod/${SAVED}`);
    await untilOffered(cluster, SLOTS);
  },
};

/** Writes the GPU side of the only pod at work to a file. */
export async function judgeSave(scene: NodeScene): Promise<void> {
  const [id = ''] = allocations();
  const before = workers();
  const { status, output } = await onNode(scene, 'checkpoint', id, FILES);
  scene.tally.judge('its GPU side is in a file', [
    ...(status === 0 && existsSync(FILES) ? [] : [output]),
    ...(await untilGone(before)),
  ]);
}

export async function judgeRestore(scene: NodeScene, what: string): Promise<void> {
  const { status, output } = await onNode(scene, 'restore', FILES);
  scene.tally.judge(what, status === 0 ? [] : [output]);
}

/** Runs a command of gpu-proxy, as an administrator does. */
async function onNode({ cluster }: NodeScene, ...words: readonly string[]) {
  const [pod] = await partPods(cluster, 'node');
  const place = ['-n', NAMESPACE, 'exec', pod?.metadata?.name ?? '', '-c', 'gpu-proxy'];
  return cluster.tryKubectl([...place, '--', 'gpu-proxy', ...words]);
}

async function untilGone(pids: readonly number[]): Promise<string[]> {
  const left = await lookUntil(
    () => workers().filter((pid) => pids.includes(pid)),
    (some) => some.length === 0,
  );
  return left.map((pid) => `worker ${pid} is still there`);
}

async function replaceNodePod({ cluster }: NodeScene): Promise<void> {
  const since = Math.floor(Date.now() / 1000) * 1000; // as precise as times of containers
  const which = ['-l', 'app.kubernetes.io/component=node'];
  await cluster.kubectl('-n', NAMESPACE, 'delete', 'pod', ...which, '--wait=true');
  await untilReady(cluster, 'node', since);
}
