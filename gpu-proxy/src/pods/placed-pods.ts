import type { V1Pod } from '@kubernetes/client-node';
import { assignmentOf, type PlacedPod } from '@nvidia-virtual/kube-common/assignment';
import { containersOf } from '@nvidia-virtual/kube-common/pod-request';
import type { AllocationSpecification } from '@nvidia-virtual/ledger';
import { isOver, type NodePods } from './node-pods.js';

/**
 * Limit on the GPUs of all pods. Each takes up to 120 bytes of an annotation of the node, and the
 * API server accepts 256 KiB of annotations.
 */
const MOST_GPUS = 256;

/**
 * Pods that our scheduler did not place, with the slots that their allocations have. Our scheduler
 * counts others on every GPU. So a pod is left out if one of its containers may get another GPU: it
 * has no allocation, or that is draining.
 */
export function placedPods(
  allocations: readonly AllocationSpecification[],
  pods: Pick<NodePods, 'find'>,
): PlacedPod[] {
  const placed: PlacedPod[] = [];
  let count = 0;
  for (const [uid, own] of allocationsByPod(allocations)) {
    const pod = pods.find(uid);
    if (pod === undefined || isOver(pod) || assignmentOf(pod) || !haveAll(pod, own)) continue;
    const gpus = [...slotsByGpu(own)].map(([gpu, slots]) => ({ gpu, slots }));
    count += gpus.length;
    if (count > MOST_GPUS) break;
    placed.push({ pod: pod.metadata?.uid ?? '', gpus });
  }
  return placed;
}

/** Groups allocations by the kubelet's UID of their pod. */
function allocationsByPod(
  allocations: readonly AllocationSpecification[],
): Map<string, AllocationSpecification[]> {
  const byPod = new Map<string, AllocationSpecification[]>();
  for (const one of allocations) {
    if (one.owner === undefined || one.draining) continue;
    const { podUid } = one.owner;
    byPod.set(podUid, [...(byPod.get(podUid) ?? []), one]);
  }
  return byPod;
}

function haveAll(pod: V1Pod, own: readonly AllocationSpecification[]): boolean {
  const bound = new Set(own.map(({ owner }) => owner?.container));
  return containersOf(pod).every(({ container, slots }) => slots === 0 || bound.has(container));
}

function slotsByGpu(own: readonly AllocationSpecification[]): Map<string, number> {
  const held = new Map<string, number>();
  for (const { gpus, slots = [] } of own)
    for (const gpu of gpus)
      held.set(gpu, (held.get(gpu) ?? 0) + Math.ceil(slots.length / gpus.length));
  return held;
}
