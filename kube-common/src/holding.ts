import type { V1Pod } from '@kubernetes/client-node';
import { type AssignedGpu, assignmentOf, heldBy } from './assignment.js';
import { containersOf, peak } from './pod-request.js';

/** Slots by GPU UUID. */
export type Holding = ReadonlyMap<string, number>;

/**
 * Slots that a pod holds at its peak according to its assignment, used or not. Undefined without
 * an assignment.
 */
export function assignedHolding(pod: V1Pod): Holding | undefined {
  const assignment = assignmentOf(pod);
  if (assignment === undefined) return undefined;
  const containers = containersOf(pod).map(({ container, init }) => ({
    ...{ init, held: heldBy(assignment, container) },
  }));
  const uuids = new Set(containers.flatMap(({ held }) => held.map(({ gpu }) => gpu)));
  const slotsOf = (held: readonly AssignedGpu[], uuid: string) => {
    const { slots = 0, taken = slots } = held.find(({ gpu }) => gpu === uuid) ?? {};
    return taken;
  };
  return new Map(
    [...uuids].map((uuid) => [
      uuid,
      peak(containers.map(({ init, held }) => ({ init, slots: slotsOf(held, uuid) }))),
    ]),
  );
}
