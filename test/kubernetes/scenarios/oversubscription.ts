import { readFileSync } from 'node:fs';
import { lookUntil } from '../../processes.js';
import { tenantPod } from './pods.js';
import { allocations, arenaHolders } from './processes.js';
import { SLOTS } from './product.js';
import type { NodeScenario, NodeScene } from './scene.js';
import { memoryProblems } from './suspension.js';
import { runsUndisturbed } from './tenants.js';

/** Hosts of tests have less than half of that available, and programs use a little of it only. */
const FACTOR = 1.5;
const PODS = ['first', 'second'];
/** MiB of an idle pod: so much that a part has to leave for another one. */
const RESTING = 3072;

/** Problem of other systems: idle memory of one pod keeps others away from the GPU. */
export const oversubscription: NodeScenario = {
  name: 'oversubscription',
  about: 'two pods of 70 % each compute on one GPU in turns, and one that is idle leaves',
  values: { 'node.oversubscription': String(FACTOR), 'node.hostMemory': '16GiB' },
  slots: SLOTS * FACTOR,
  async play(scene) {
    const { tally, tenants } = scene;
    for (const pod of PODS) await tenants.apply(tenantPod(pod, { slots: 0.7 * SLOTS }));
    for (const pod of PODS) await tenants.logUntil(pod, 'working');
    const before = await Promise.all(PODS.map((pod) => tenants.rounds(pod)));
    await Promise.all(
      PODS.map((pod, index) => tenants.logUntil(pod, `${(before[index] ?? 0) + 20} rounds`)),
    );
    const disturbed: string[] = [];
    for (const pod of PODS)
      if (!runsUndisturbed(await tenants.pod(pod))) disturbed.push(await tenants.describe(pod));
    tally.judge('both compute in turns, with right results', disturbed);
    await tenants.delete(...PODS.map((pod) => `pod/${pod}`));

    await judgeWhatIsOut(scene);

    // kube-scheduler sees as many free slots.
    await tenants.apply(tenantPod('beyond', { slots: SLOTS + 1 }));
    await tenants.event('beyond', /GPUs have 10 slots, and container \w+ asks for 11 on one/);
    tally.judge('a pod cannot ask for more than a GPU has at a time', []);
    await tenants.delete('pod/beyond');
  },
};

/** A pod without work is out for one with work. It is deleted, and then another one is drained. */
async function judgeWhatIsOut(scene: NodeScene): Promise<void> {
  const { cluster, tally, tenants } = scene;
  const rest = async () => {
    await tenants.apply(tenantPod('rests', { does: `rest ${RESTING}`, slots: 0.7 * SLOTS }));
    await tenants.logUntil('rests', 'resting');
  };
  await rest();
  await tenants.apply(tenantPod('computes', { slots: 0.7 * SLOTS }));
  await tenants.logUntil('computes', 'working');
  tally.judge(
    'an idle pod is out for one that computes',
    await memoryProblems(scene, 'rests', 'some'),
  );
  await tenants.delete('pod/rests');
  const left = await lookUntil(
    () => ({ arenas: arenaHolders(), allocations: allocations().length }),
    (seen) => seen.arenas.length === 0 && seen.allocations === 1,
  );
  const isLeft = left.arenas.length > 0 || left.allocations !== 1;
  tally.judge('deleted, it leaves nothing', isLeft ? [JSON.stringify(left)] : []);

  await rest();
  tally.judge('the next one is out as well', await memoryProblems(scene, 'rests', 'some'));
  const [, huge = '0'] =
    /^ShmemHugePages: +(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8')) ?? [];
  tally.judge('host memory has huge pages', huge === '0' ? ['the node has none'] : []);
  const drained = '--pod-selector=app in (rests,computes)';
  await cluster.kubectl('drain', cluster.nodeName, '--ignore-daemonsets', '--force', drained);
  await tenants.gone();
  await cluster.kubectl('uncordon', cluster.nodeName);
}
