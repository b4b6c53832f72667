import type { V1Pod } from '@kubernetes/client-node';
import { type Assignment, readAssignment } from './assignment.js';
import { ANNOTATION } from './names.js';
import { containersOf, peak } from './pod-request.js';

/** Slots by GPU UUID. */
export type Holding = ReadonlyMap<string, number>;

/**
 * Slots that a pod holds at its peak according to its assignment, used or not. Undefined without
 * an assignment.
 */
export function assignedHolding(pod: V1Pod): Holding | undefined {
  const assigned = assignmentOf(pod)?.containers;
  if (assigned === undefined) return undefined;
  const uuids = new Set(Object.values(assigned).flatMap((gpus) => gpus.map(({ gpu }) => gpu)));
  const slotsOf = (container: string, uuid: string) => {
    const { slots = 0, taken = slots } = assigned[container]?.find(({ gpu }) => gpu === uuid) ?? {};
    return taken;
  };
  const containers = containersOf(pod);
  return new Map(
    [...uuids].map((uuid) => [
      uuid,
      peak(containers.map(({ container, init }) => ({ init, slots: slotsOf(container, uuid) }))),
    ]),
  );
}

/** Only the scheduler may write the annotation, so an invalid one counts as missing. */
function assignmentOf({ metadata }: V1Pod): Assignment | undefined {
  try {
    return readAssignment(metadata?.annotations?.[ANNOTATION.assigned]);
  } catch {
    return undefined;
  }
}
