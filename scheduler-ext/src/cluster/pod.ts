import type { V1Pod } from '@kubernetes/client-node';
import { assignedHolding, type Holding } from '@nvidia-virtual/kubernetes/holding';
import { containersOf, PodRequestError, readPodRequest } from '@nvidia-virtual/kubernetes/pod-request';
import { Demand } from '../placement/demand.js';

/** What is kept of a pod that asks for slots. */
export interface PodRecord {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly priority: number;
  /** Undefined until it is bound. */
  readonly node: string | undefined;
  /** Where it waits for others to go. */
  readonly nominated: string | undefined;
  /** It holds nothing any more. */
  readonly ended: boolean;
  /** When it is to be gone, in milliseconds since 1970; undefined while nobody deletes it. */
  readonly leavesAt: number | undefined;
  readonly demand: Demand | undefined;
  /** Why there is no demand. */
  readonly problem: string | undefined;
  /** By its assignment; undefined when it has none. */
  readonly holding: Holding | undefined;
  /** For the budgets that protect it. */
  readonly labels: Readonly<Record<string, string>>;
}

/** As the reflector hands it on: of a pod that asks for nothing, nothing is kept. */
export interface SeenPod {
  readonly uid: string;
  readonly record: PodRecord | undefined;
}

export function seePod(pod: V1Pod): SeenPod {
  return { uid: pod.metadata?.uid ?? '', record: readPod(pod) };
}

/** A pod that is so much longer there than it was to be, in milliseconds, is held by something, and nobody waits for it. */
const OVERDUE = 60_000;

/** It is being deleted, whoever wanted that, and its slots are about to be free. */
export function isLeaving({ leavesAt }: PodRecord): boolean {
  return leavesAt !== undefined && Date.now() < leavesAt + OVERDUE;
}

/** Undefined for a pod that asks for no slots. */
export function readPod(pod: V1Pod): PodRecord | undefined {
  if (!containersOf(pod).some(({ slots }) => slots > 0)) return undefined;
  const { metadata = {}, spec, status } = pod;
  return {
    uid: metadata.uid ?? '',
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    priority: spec?.priority ?? 0,
    node: spec?.nodeName || undefined,
    nominated: status?.nominatedNodeName || undefined,
    ended: status?.phase === 'Succeeded' || status?.phase === 'Failed',
    leavesAt: metadata.deletionTimestamp && new Date(metadata.deletionTimestamp).getTime(),
    labels: metadata.labels ?? {},
    holding: assignedHolding(pod),
    ...demandOf(pod),
  };
}

function demandOf(pod: V1Pod): Pick<PodRecord, 'demand' | 'problem'> {
  try {
    const request = readPodRequest(pod);
    return { demand: request && new Demand(request), problem: undefined };
  } catch (error) {
    if (!(error instanceof PodRequestError)) throw error;
    return { demand: undefined, problem: error.message };
  }
}
