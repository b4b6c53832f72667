import { MIRROR_ANNOTATION } from '@nvidia-virtual/kube-common/names';
import type { Owner } from '@nvidia-virtual/ledger';
import type { NodeFigures } from './figures.js';
import type { GpuPod } from './pods.js';

export type Allocation = NodeFigures['allocations'][number];

/** A container that was granted its part a second time has a younger allocation. */
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
 * Nodes write the kubelet's UID. Annotations are anybody's to write, so that one counts for a pod
 * of the same name only.
 */
function isOf(
  owner: Owner,
  { metadata: { name, namespace, uid, annotations } = {} }: GpuPod,
): boolean {
  const isNamed = owner.pod === name && owner.namespace === namespace;
  return isNamed && (owner.podUid === uid || owner.podUid === annotations?.[MIRROR_ANNOTATION]);
}
