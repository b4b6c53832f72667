import type { V1Pod } from '@kubernetes/client-node';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { readAssignment } from '@nvidia-virtual/kube-common/assignment';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import type { BindResult, FilterResult } from '@nvidia-virtual/scheduler-ext/extender/messages';
import { pod } from '../../kubernetes/scheduler/objects.js';
import { answer, type ExtenderProcess, question } from './extender-process.js';
import { createPods, listPods, SLOTS } from './load.js';

interface Race {
  readonly bound: number;
  readonly refused: number;
  /** GPUs with more assigned slots than they have. */
  readonly oversold: number;
}

const SCHEDULERS = 2;
/** Concurrent bindings of a scheduler, as in kube-scheduler. */
const AT_ONCE = 16;

/** Many schedulers place more pods than fit on the same few nodes at the same time. */
export async function race(
  api: ApiServer,
  extender: ExtenderProcess,
  names: readonly string[],
  pods: number,
): Promise<Race> {
  const racers = Array.from({ length: pods }, (_, index) =>
    pod(`racer-${index}`, { slots: 3 + (index % 4), spec: { schedulerName: 'nobody' } }),
  );
  const made = await createPods(api, racers);
  let [bound, refused, next] = [0, 0, 0];
  const worker = async () => {
    for (let index = next++; index < made.length; index = next++) {
      if (await placeOne(extender, made[index] as V1Pod, names)) bound++;
      else refused++;
    }
  };
  await Promise.all(Array.from({ length: SCHEDULERS * AT_ONCE }, worker));
  return { bound, refused, oversold: oversold(await listPods(api)) };
}

async function placeOne(
  extender: ExtenderProcess,
  racer: V1Pod,
  names: readonly string[],
): Promise<boolean> {
  const { NodeNames = [] } = answer<FilterResult>(
    await extender.ask('filter', question({ Pod: racer, NodeNames: names })),
  );
  const [Node] = NodeNames;
  if (Node === undefined) return false;
  const { name, namespace, uid } = racer.metadata ?? {};
  const bound = await extender.ask(
    'bind',
    question({ PodName: name, PodNamespace: namespace, PodUID: uid, Node }),
  );
  return answer<BindResult>(bound).Error === undefined;
}

function oversold(pods: readonly V1Pod[]): number {
  const sold = new Map<string, number>();
  for (const { metadata } of pods) {
    const { containers = {} } = readAssignment(metadata?.annotations?.[ANNOTATION.assigned]) ?? {};
    for (const { gpu, slots } of Object.values(containers).flat())
      sold.set(gpu, (sold.get(gpu) ?? 0) + slots);
  }
  return [...sold.values()].filter((slots) => slots > SLOTS).length;
}
