import { readdirSync } from 'node:fs';
import { SPECIFICATION } from '@nvidia-virtual/node-state/paths';
import { readSpecification } from '@nvidia-virtual/node-state/specification';
import { lookUntil } from '../../processes.js';
import { STATE_ROOT } from '../cluster/places.js';
import { podsProblems } from './gpu-usage.js';
import { nodeLog } from './node-log.js';
import { ordinaryPod, tenantPod } from './pods.js';
import { allocations } from './processes.js';
import type { NodeScenario } from './scene.js';
import { runsUndisturbed } from './tenants.js';

export const stolenSocket: NodeScenario = {
  name: 'stolen-socket',
  beside: true,
  about: 'a pod with the stolen socket of another is refused, and the other is not affected',
  async play({ cluster, tally, tenants }) {
    await tenants.apply(tenantPod('owner'));
    await tenants.logUntil('owner', 'working');
    const loot = stolen((await tenants.pod('owner')).metadata?.uid);
    await tenants.apply(ordinaryPod('thief', ['/opt/programs/tenant', 'once'], loot));
    const printed = await tenants.result('thief');
    tally.judge(
      'a pod with the socket of another is refused',
      /^cuda\w+.*: cudaError/.test(printed) ? [] : [`it printed: ${printed}`],
    );
    const whose = `is for container main of pod ${tenants.namespace}/owner`;
    const refusal = new RegExp(`was refused: allocation \\w+ ${whose}`);
    const says = (log: readonly string[]) => log.some((line) => refusal.test(line));
    const log = await lookUntil(() => nodeLog('gpu-proxy'), says);
    tally.judge('gpu-proxy says whose it is', says(log) ? [] : log.slice(-50));
    const owner = await tenants.pod('owner');
    tally.judge(
      'the owner notices nothing',
      runsUndisturbed(owner) ? [] : [await tenants.describe('owner')],
    );
    tally.judge(
      'and kubectl gpu-usage shows it alone',
      await podsProblems(cluster, tenants.namespace, { owner: 1 }),
    );
    await tenants.delete('pod', 'owner', 'thief');
  },
};

/**
 * What a pod can steal that may mount directories of the host; a hardened node allows no such pod.
 */
function stolen(podUid: string | undefined): Record<string, string> {
  const id = allocations().find((each) => isOf(each, podUid));
  const [version] = readdirSync(`${STATE_ROOT}/versions`).filter((name) =>
    /^[0-9a-f]+$/.test(name),
  );
  return {
    '/run/nvidia-virtual': `${STATE_ROOT}/state/allocations/${id}/client`,
    '/usr/lib/x86_64-linux-gnu/libcuda.so.1': `${STATE_ROOT}/versions/${version}/lib/libcuda.so.1`,
  };
}

function isOf(id: string, podUid: string | undefined): boolean {
  const file = `${STATE_ROOT}/state/allocations/${id}/${SPECIFICATION}`;
  try {
    return readSpecification(file).owner?.podUid === podUid;
  } catch {
    return false; // its pod is just starting
  }
}
