import { readInventory } from '@nvidia-virtual/kube-common/assignment';
import { ANNOTATION, INVENTORY_ANNOTATION } from '@nvidia-virtual/kube-common/names';
import { lookUntil } from '../../processes.js';
import { gpuUsage, servedPod } from './gpu-usage.js';
import { tenantPod } from './pods.js';
import { killPart } from './processes.js';
import { SLOTS } from './product.js';
import type { NodeScenario, NodeScene } from './scene.js';
import { runsUndisturbed } from './tenants.js';

/** More than a half of a GPU. */
const PART = 7;

/** Problem of other systems: a pod stays on its GPU, whatever becomes of the others. */
export const moving: NodeScenario = {
  name: 'moving',
  about: 'a pod that computes moves between GPUs, by command and by a drain; others get its slots',
  values: { 'node.simulated.gpus': '2', 'node.movable': 'true' },
  slots: 2 * SLOTS,
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    const uuids = await movableGpus(scene);
    await tenants.apply(tenantPod('moves', { slots: PART, spec: { restartPolicy: 'Always' } }));
    await tenants.logUntil('moves', 'working');
    const from = await gpuOf(scene);
    const to = uuids.findIndex((uuid) => uuid !== from);

    await judgeMove(scene, to, uuids[to]);
    const taker = { slots: PART, annotations: { [ANNOTATION.gpuUuid]: from } };
    await tenants.apply(tenantPod('takes', taker));
    await tenants.logUntil('takes', 'working');
    tally.judge('another pod gets the slots that it has left', []);

    const back = ['move', 'moves', '-n', tenants.namespace, '--gpu', from, '--timeout', '5s'];
    const says = `${SLOTS - PART} of its slots are free, and the pod has ${PART}`;
    // A slow scheduler has not answered after five seconds.
    const refused = await lookUntil(
      () => gpuUsage(cluster, back),
      ({ output }) => output.includes(says),
    );
    await tenants.event('moves', /slots are free, and the pod has 7/);
    tally.judge(
      'a move to a GPU without room is refused with figures',
      refused.status === 1 && refused.output.includes(says) ? [] : [refused.output],
    );

    // It may fail: the end of process 1 ends the command, too.
    const kill = ['exec', 'moves', '--', 'sh', '-c', 'kill 1'];
    await cluster.tryKubectl(['-n', tenants.namespace, ...kill]);
    await tenants.until(
      'moves',
      'restarted',
      ({ status }) => (status?.containerStatuses?.[0]?.restartCount ?? 0) > 0,
    );
    await tenants.logUntil('moves', 'working');
    const restarted = await gpuOf(scene, uuids[to]);
    tally.judge(
      'its next container starts on the new GPU',
      restarted === uuids[to] ? [] : [`it is on ${restarted}`],
    );

    await tenants.delete('pod/takes');
    await killPart('gpu-proxy');
    await judgeMove(scene, 1 - to, from);
    await judgeDrain(scene, 1 - to, uuids[to]);
    await tenants.delete('pod/moves');
  },
};

/** The pod is on the GPU of the index, and goes to the other one. */
async function judgeDrain(scene: NodeScene, index: number, gpu = ''): Promise<void> {
  const { cluster, tally, tenants } = scene;
  const named = [cluster.nodeName, '--gpu', String(index)];
  const { output, status } = await gpuUsage(cluster, ['drain', ...named]);
  const present = await gpuOf(scene, gpu);
  const line = `${tenants.namespace}/moves is on GPU ${1 - index} now.`;
  tally.judge('a drained GPU is left by its pod', [
    ...(status === 0 && output.includes(line) ? [] : [output]),
    ...(present === gpu ? [] : [`it is on ${present}`]),
  ]);
  try {
    await tenants.apply(tenantPod('none', { slots: PART }));
    await tenants.event('none', /Nodes without 7 free slots/);
  } finally {
    const undrained = await gpuUsage(cluster, ['undrain', ...named]);
    tally.judge('it can be undrained', undrained.status === 0 ? [] : [undrained.output]);
  }
  await tenants.logUntil('none', 'working');
  await tenants.delete('pod/none');
}

async function judgeMove(scene: NodeScene, index: number, gpu = ''): Promise<void> {
  const { cluster, tally, tenants } = scene;
  const [before, { status }] = [await tenants.rounds('moves'), await tenants.pod('moves')];
  const args = ['move', 'moves', '-n', tenants.namespace, '--gpu', String(index)];
  const { output } = await gpuUsage(cluster, args);
  await tenants.event('moves', new RegExp(`Container main is on GPU ${index} \\(${gpu}\\) now`));
  await tenants.logUntil('moves', `${Math.ceil((before + 20) / 10) * 10} rounds`);
  const after = await tenants.pod('moves');
  const restarts = status?.containerStatuses?.[0]?.restartCount;
  const isSame =
    after.status?.containerStatuses?.[0]?.restartCount === restarts &&
    (restarts !== 0 || runsUndisturbed(after));
  const present = await gpuOf(scene, gpu);
  tally.judge(`it moves to GPU ${index}, and goes on with right results`, [
    ...(output.includes(`moves is on GPU ${index} of node`) ? [] : [output]),
    ...(present === gpu ? [] : [`it is on ${present}`]),
    ...(isSame ? [] : [await tenants.describe('moves')]),
  ]);
}

/** UUIDs by index, once the node says that pods can move between them. */
async function movableGpus({ cluster }: NodeScene): Promise<readonly string[]> {
  const look = async () => {
    const { metadata } = await cluster.api.request<{
      metadata?: { annotations?: Record<string, string> };
    }>({ path: `/api/v1/nodes/${cluster.nodeName}` });
    const inventory = readInventory(metadata?.annotations?.[INVENTORY_ANNOTATION]);
    return inventory?.movable ? inventory.gpus.map(({ uuid }) => uuid) : [];
  };
  return lookUntil(look, (gpus) => gpus.length === 2);
}

/** UUID of the GPU of which it holds slots, at last `expected`. While it moves, both UUIDs. */
async function gpuOf({ tenants }: NodeScene, expected?: string): Promise<string> {
  const look = async () => {
    const pod = await servedPod(tenants, 'moves');
    const { gpus = [], reserved = [] } = pod?.containers[0] ?? {};
    const uuids = [...gpus.map(({ uuid }) => uuid), ...reserved];
    return pod?.state === 'Active' ? uuids.join() : '';
  };
  return lookUntil(look, (uuid) => uuid !== '' && uuid === (expected ?? uuid));
}
