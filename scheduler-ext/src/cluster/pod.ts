import type { V1OwnerReference, V1Pod } from '@kubernetes/client-node';
import { type Assignment, assignmentOf } from '@nvidia-virtual/kube-common/assignment';
import { assignedHolding, type Holding } from '@nvidia-virtual/kube-common/holding';
import { keptLabels } from '@nvidia-virtual/kube-common/kept-parts';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import {
  containersOf,
  PodRequestError,
  readPodRequest,
} from '@nvidia-virtual/kube-common/pod-request';
import { Demand } from '../placement/demand.js';

/** The cached part of a pod that requests slots. */
export interface PodRecord {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly priority: number;
  /** Undefined until it is bound. */
  readonly node: string | undefined;
  /** The node where it waits for its victims to end. */
  readonly nominated: string | undefined;
  /** True if it has terminated and holds no slots. */
  readonly ended: boolean;
  /** Deadline of its deletion, in milliseconds since 1970; undefined: not being deleted. */
  readonly leavesAt: number | undefined;
  readonly demand: Demand | undefined;
  /** The reason why `demand` is undefined. */
  readonly problem: string | undefined;
  readonly assignment: Assignment | undefined;
  /** Its annotation, as it was read. */
  readonly assignmentText: string | undefined;
  /** From its assignment; undefined if it has none. */
  readonly holding: Holding | undefined;
  /** UUID of the GPU to which its user wants to move it. */
  readonly moveTo: string | undefined;
  /** Its resourceVersion. */
  readonly version: string;
  /** Whether a controller creates another pod if this one is deleted. */
  readonly controlled: boolean;
  /** The group of pods that should be bound together; undefined: it has none. */
  readonly group: string | undefined;
  /** Used to match PodDisruptionBudgets. */
  readonly labels: Readonly<Record<string, string>>;
}

/** A pod from the reflector. `record` is undefined for a pod that requests no slots. */
export interface SeenPod {
  readonly uid: string;
  readonly record: PodRecord | undefined;
}

export function seePod(pod: V1Pod, slotCores?: number): SeenPod {
  return { uid: pod.metadata?.uid ?? '', record: readPod(pod, slotCores) };
}

/**
 * Milliseconds after the deadline of its deletion when a pod counts as stuck. It is not awaited any
 * longer.
 */
const OVERDUE = 60_000;

/** Whether the pod is being deleted and its slots will soon be free. */
export function isLeaving({ leavesAt }: PodRecord): boolean {
  return leavesAt !== undefined && Date.now() < leavesAt + OVERDUE;
}

/**
 * @param slotCores as in Demand
 * @returns undefined for a pod that requests no slots
 */
export function readPod(pod: V1Pod, slotCores?: number): PodRecord | undefined {
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
    controlled: isControlled(metadata.ownerReferences),
    group: groupOf(pod),
    labels: keptLabels(metadata.labels),
    assignment: assignmentOf(pod),
    assignmentText: metadata.annotations?.[ANNOTATION.assigned],
    holding: assignedHolding(pod),
    moveTo: metadata.annotations?.[ANNOTATION.moveTo] || undefined,
    version: metadata.resourceVersion ?? '',
    ...demandOf(pod, slotCores),
  };
}

/** Labels that name a group: of kube-scheduler's plugins, of Kueue, and of JobSet. */
const GROUP_LABELS = [
  'scheduling.x-k8s.io/pod-group',
  'kueue.x-k8s.io/pod-group-name',
  'jobset.sigs.k8s.io/jobset-name',
];

/** The field of Kubernetes 1.36 that names a PodGroup. The client does not know it yet. */
interface Grouped {
  readonly schedulingGroup?: { readonly podGroupName?: string };
}

function groupOf({ metadata, spec }: V1Pod): string | undefined {
  const own = (spec as Grouped | undefined)?.schedulingGroup?.podGroupName;
  const labelled = GROUP_LABELS.find((label) => metadata?.labels?.[label]);
  const name = own ?? (labelled && `${labelled}=${metadata?.labels?.[labelled]}`);
  return name && `${metadata?.namespace} ${name}`;
}

/** The controller of a static pod's mirror is its node, which does not replace it. */
function isControlled(owners: readonly V1OwnerReference[] = []): boolean {
  return owners.some(({ kind, controller }) => controller === true && kind !== 'Node');
}

/** Events have 1,024 characters, and kube-scheduler is told the problem for each node. */
const LONGEST_PROBLEM = 1000;

function demandOf(
  pod: V1Pod,
  slotCores: number | undefined,
): Pick<PodRecord, 'demand' | 'problem'> {
  try {
    const request = readPodRequest(pod);
    return { demand: request && new Demand(request, slotCores), problem: undefined };
  } catch (error) {
    if (!(error instanceof PodRequestError)) throw error;
    return { demand: undefined, problem: error.message.slice(0, LONGEST_PROBLEM) };
  }
}
