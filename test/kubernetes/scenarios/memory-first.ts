import type { InventoryGpu } from '@nvidia-virtual/kube-common/assignment';
import { podProblems } from './gpu-usage.js';
import { nodeGpus } from './node-inventory.js';
import { restrictedPod, tenantPod } from './pods.js';
import { change } from './product.js';
import type { NodeScenario, Scene } from './scene.js';
import { runsUndisturbed } from './tenants.js';

const MIB = 2 ** 20;
const MEMORY = 'nvidia-virtual/memory';
const CORES = 'nvidia-virtual/cores';
/** Two models. Contexts of the simulated GPU need no memory of GPUs that processes share. */
const MODELS = {
  'node.slotMemory': '1GiB',
  'node.simulated.gpus': '2',
  'node.simulated.memory': '16GiB\\,8GiB',
  'node.managedMemory': 'moves',
};
const [LARGE_SLOTS, SMALL_SLOTS] = [16, 8];

/** Problem of other systems: the same request is another amount of memory on each model. */
export const memoryFirst: NodeScenario = {
  name: 'memory-first',
  about:
    'slots of a fixed size on two models of GPUs: pods that ask by memory get the same on both, ' +
    'while a pod from before goes on; managed memory moves to a GPU',
  async play(scene) {
    const { cluster, tally, tenants } = scene;
    await tenants.apply(tenantPod('before', { slots: 3 }));
    await tenants.logUntil('before', 'working');
    await change(cluster, MODELS, LARGE_SLOTS + SMALL_SLOTS);
    const before = await tenants.pod('before');
    tally.judge(
      'slotMemory changes: who runs goes on',
      runsUndisturbed(before) ? [] : [await tenants.describe('before')],
    );
    await tenants.logUntil('before', `${(await tenants.rounds('before')) + 20} rounds`);
    await tenants.delete('pod/before');

    const models = await nodeGpus(cluster);
    tally.judge(
      'each model has as many slots as fit',
      models.map(({ slots }) => slots).join() === `${LARGE_SLOTS},${SMALL_SLOTS}`
        ? []
        : [JSON.stringify(models)],
    );
    await Promise.all(models.map((model) => judgeModel(scene, model)));

    await tenants.apply(tenantPod('beyond', { annotations: { [MEMORY]: '2Gi' } }));
    await tenants.event('beyond', /1 slots of a GPU hold 1Gi.*ask for 2 slots/);
    tally.judge('explicit slots that hold less are refused with the number needed', []);
    await tenants.delete('pod/beyond');

    await tenants.apply(restrictedPod('managed', 'managed 16'));
    const place = await tenants.result('managed');
    tally.judge(
      'managed memory of a pod without any right is on the GPU',
      place === 'on the GPU\n' ? [] : [place],
    );
    await tenants.delete('pod/managed');
  },
};

async function judgeModel({ tally, tenants }: Scene, model: InventoryGpu): Promise<void> {
  const name = `on-${model.slots}`;
  const annotations = { [MEMORY]: '1500Mi', [CORES]: '20', 'nvidia-virtual/gpu-uuid': model.uuid };
  await tenants.apply(tenantPod(name, { slots: 0, annotations }));
  await tenants.logUntil(name, 'working');
  tally.judge(
    `of a GPU with ${model.slots} slots, 1500 MiB and 20 % are 2 slots, and exactly that`,
    await podProblems(tenants, name, ({ containers: [{ slots, memory, time } = {}] }) => {
      return slots === 2 && memory?.quota === 1500 * MIB && time?.share === 20;
    }),
  );
  await tenants.delete(`pod/${name}`);
}
