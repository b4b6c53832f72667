import { lookUntil } from '../../processes.js';
import { nodeGpus } from './node-inventory.js';
import { tenantPod } from './pods.js';
import { SLOTS, untilOffered, untilReady, upgrade } from './product.js';
import type { NodeScenario, Scene } from './scene.js';
import { runsUndisturbed } from './tenants.js';

/** Hosts of tests have less than half of that available, and programs use a little of it only. */
const FACTOR = 1.5;
const VALUES = { 'node.oversubscription': String(FACTOR), 'node.hostMemory': '16GiB' };
const PODS = ['first', 'second'];

/** Problem of other systems: idle memory of one pod keeps others away from the GPU. */
export const oversubscription: NodeScenario = {
  name: 'oversubscription',
  about: 'two pods of 70 % each compute on one GPU in turns; what one pod can have has a limit',
  async play(scene) {
    const { tally, tenants } = scene;
    await change(scene, VALUES, SLOTS * FACTOR);
    for (const pod of PODS) await tenants.apply(tenantPod(pod, { slots: 0.7 * SLOTS }));
    for (const pod of PODS) await tenants.logUntil(pod, 'working');
    const before = await Promise.all(PODS.map((pod) => tenants.rounds(pod)));
    await Promise.all(
      PODS.map((pod, index) => tenants.logUntil(pod, `${(before[index] ?? 0) + 40} rounds`)),
    );
    const disturbed: string[] = [];
    for (const pod of PODS)
      if (!runsUndisturbed(await tenants.pod(pod))) disturbed.push(await tenants.describe(pod));
    tally.judge('both compute in turns, with right results', disturbed);
    await tenants.delete(...PODS.map((pod) => `pod/${pod}`));

    // kube-scheduler sees as many free slots.
    await tenants.apply(tenantPod('beyond', { slots: SLOTS + 1 }));
    await tenants.event('beyond', /GPUs have 10 slots, and container \w+ asks for 11 on one/);
    tally.judge('a pod cannot ask for more than a GPU has at a time', []);
    await tenants.delete('pod/beyond');
    await change(scene, {}, SLOTS);
  },
};

async function change(
  { cluster }: Scene,
  values: Readonly<Record<string, string>>,
  slots: number,
): Promise<void> {
  await upgrade(cluster, values);
  await untilReady(cluster, 'node');
  await untilOffered(cluster, slots);
  await lookUntil(
    async () => (await nodeGpus(cluster)).reduce((sum, gpu) => sum + gpu.slots, 0),
    (sum) => sum === slots,
  );
}
