import { lookUntil } from '../../processes.js';
import type { Cluster } from '../cluster/cluster.js';
import { podsProblems } from './gpu-usage.js';
import { nodeGpu } from './node-inventory.js';
import { tenantPod } from './pods.js';
import type { Scenario } from './scene.js';
import { runsUndisturbed, type Tenants } from './tenants.js';

const MIB = 2 ** 20;
/** Tolerance in MiB: rounding, and the overhead of a first allocation. */
const SLACK = 32;

/**
 * Problem of other systems: memory limits exceeded or miscounted; the whole GPU visible in a pod.
 */
export const sharing: Scenario = {
  name: 'sharing',
  beside: true,
  anywhere: true,
  about:
    'two pods share a GPU, each sees its own slice, and one that exceeds its quota does not ' +
    'affect others',
  async play({ cluster, tally, tenants }) {
    const { slotMemory, memory } = await nodeGpu(cluster);
    await tenants.apply(tenantPod('anna', { slots: 2 }), tenantPod('otto', { slots: 3 }));
    await Promise.all(['anna', 'otto'].map((name) => tenants.logUntil(name, 'working')));
    tally.judge('two pods share a GPU and print right results', []);

    await tenants.apply(
      tenantPod('sees-one', { does: 'look' }),
      tenantPod('sees-three', { does: 'look', slots: 3 }),
    );
    for (const [name, slots] of [
      ['sees-one', 1],
      ['sees-three', 3],
    ] as const) {
      tally.judge(
        `${name} sees its own slice`,
        differences(await tenants.result(name), slots, slotMemory / MIB, memory / MIB),
      );
    }

    tally.judge(
      'kubectl gpu-usage shows who works',
      await podsProblems(cluster, tenants.namespace, { anna: 2, otto: 3 }),
    );

    tally.judge('a priority needs a permission', await permissionProblems(cluster, tenants));

    const before = await tenants.rounds('anna');
    await tenants.apply(tenantPod('greedy', { does: 'fill 8192' }));
    const printed = await tenants.result('greedy');
    const filled = /^(\d+) MiB, then cudaErrorMemoryAllocation$/m.exec(printed);
    tally.judge(
      'a pod that passes its quota is refused memory',
      quotaProblems(Number(filled?.[1]), slotMemory / MIB),
    );
    await tenants.event('greedy', /of GPU memory/);
    tally.judge('and its events say so', []);
    const told = /of GPU memory were asked for where .* of the quota of .* were in use/.test(
      printed,
    );
    tally.judge('and its CUDA_LOG_FILE', told ? [] : [`it printed ${printed}`]);
    await tenants.logUntil('anna', `${before + 20} rounds`);
    const disturbed = (await Promise.all(['anna', 'otto'].map((name) => tenants.pod(name)))).filter(
      (pod) => !runsUndisturbed(pod),
    );
    tally.judge(
      'and its neighbours notice nothing',
      disturbed.map(({ metadata }) => `${metadata?.name} was disturbed`),
    );
  },
};

/** A label of the namespace lets its pods ask for a priority. */
async function permissionProblems(cluster: Cluster, tenants: Tenants): Promise<string[]> {
  const urgent = tenantPod('urgent', {
    does: 'once',
    annotations: { 'nvidia-virtual/priority': '10' },
  });
  const ask = () =>
    tenants.apply(urgent).then(
      () => 'created',
      (error: Error) => error.message,
    );
  const refusal = await ask();
  await cluster.kubectl('label', 'namespace', tenants.namespace, 'nvidia-virtual/max-priority=10');
  // The API server hears of the label a little later.
  const answer = await lookUntil(ask, (text) => text === 'created');
  if (answer === 'created') await tenants.result('urgent');
  return [
    ...(refusal.includes('allows priorities up to 0') ? [] : [`without a label: ${refusal}`]),
    ...(answer === 'created' ? [] : [`with the label: ${answer}`]),
  ];
}

function differences(log: string, slots: number, slotMiB: number, gpuMiB: number): string[] {
  const seen = /^device 0: (.+), (\d+) MiB, (\d+) MiB free$/m.exec(log);
  if (!log.startsWith('devices 1\n') || !seen) return [`it printed ${log}`];
  const total = Number(seen[2]);
  const expected = slots * slotMiB;
  return Math.abs(total - expected) > SLACK || total >= gpuMiB
    ? [`${slots} slots of ${slotMiB} MiB are ${total} MiB`]
    : [];
}

function quotaProblems(filled: number, slotMiB: number): string[] {
  return filled <= slotMiB && filled > slotMiB - SLACK
    ? []
    : [`it had ${filled} MiB of ${slotMiB} MiB when it was refused more`];
}
