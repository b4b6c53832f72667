import { MIRROR_ANNOTATION } from '@nvidia-virtual/kube-common/names';
import type { Owner } from '@nvidia-virtual/ledger';
import type { NodeFigures } from './figures.js';
import type { GpuPod } from './pods.js';

export type Allocation = NodeFigures['allocations'][number];

/** The latest allocation of a container: it gets a new one if it was granted again. */
export function allocationOf(
  pod: GpuPod,
  container: string,
  figures: NodeFigures | undefined,
): Allocation | undefined {
  return figures?.allocations.findLast(
    ({ specification: { owner } }) => owner?.container === container && isOf(owner, pod),
  );
}

/**
 * Nodes report the kubelet's UID of a pod. For a static pod that is the mirror annotation. Any user
 * can write annotations, so namespace and name must match too.
 */
function isOf(
  owner: Owner,
  { metadata: { name, namespace, uid, annotations } = {} }: GpuPod,
): boolean {
  const isNamed = owner.pod === name && owner.namespace === namespace;
  return isNamed && (owner.podUid === uid || owner.podUid === annotations?.[MIRROR_ANNOTATION]);
}
