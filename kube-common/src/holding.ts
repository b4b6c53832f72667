import type { V1Pod } from '@kubernetes/client-node';
import { type Assignment, readAssignment } from './assignment.js';
import { ANNOTATION } from './names.js';
import { containersOf, peak } from './pod-request.js';

/** Slots by UUID of the GPU. */
export type Holding = ReadonlyMap<string, number>;

/**
 * What a pod holds by its assignment, at its peak, whether it uses it already or not; undefined
 * when our scheduler assigned it nothing.
 */
export function assignedHolding(pod: V1Pod): Holding | undefined {
  const assigned = assignmentOf(pod)?.containers;
  if (assigned === undefined) return undefined;
  const uuids = new Set(Object.values(assigned).flatMap((gpus) => gpus.map(({ gpu }) => gpu)));
  const slotsOf = (container: string, uuid: string) =>
    assigned[container]?.find(({ gpu }) => gpu === uuid)?.slots ?? 0;
  const containers = containersOf(pod);
  return new Map(
    [...uuids].map((uuid) => [
      uuid,
      peak(containers.map(({ container, init }) => ({ init, slots: slotsOf(container, uuid) }))),
    ]),
  );
}

/** What nobody but our scheduler may write is right, or it is as good as missing. */
function assignmentOf({ metadata }: V1Pod): Assignment | undefined {
  try {
    return readAssignment(metadata?.annotations?.[ANNOTATION.assigned]);
  } catch {
    return undefined;
  }
}
