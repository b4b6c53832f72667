import { type Assignment, onlyGpu } from '@nvidia-virtual/kube-common/assignment';
import type { Holding } from '@nvidia-virtual/kube-common/holding';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import type { Gpu } from '../cluster/gpu.js';
import type { NodeGpus } from '../cluster/node-gpus.js';
import type { PodRecord } from '../cluster/pod.js';
import { freeFor } from '../placement/placement.js';

/** The next step of a move: annotations to write, or the reason why there is none. */
export type MoveStep =
  | {
      /** null: removed. */
      readonly annotations: Readonly<Record<string, string | null>>;
      /** Slots of the new GPU, to be reserved before. */
      readonly second?: Holding;
      /** UUID of the GPU on which it has not arrived in time. */
      readonly overdue?: string;
    }
  | {
      /** UUID that the pod asks for. */
      readonly gpu: string;
      readonly refusal: string;
    };

/** A bound pod, its assignment, and its node. */
interface Moving {
  readonly pod: PodRecord;
  readonly assignment: Assignment;
  readonly node: NodeGpus;
  /** UUID of its GPU. */
  readonly present: string;
}

/**
 * A pod moves in two steps: its assignment names the new GPU and the former one, and the pod holds
 * slots of both. When the node reports that all its programs are on the new GPU, the former one is
 * dropped. A user who asks for the former GPU meanwhile exchanges the two.
 * @param isOverdue it has not arrived in time, so it goes back
 * @returns undefined: there is nothing to do now
 */
export function nextStep(
  pod: PodRecord,
  node: NodeGpus | undefined,
  isOverdue = false,
): MoveStep | undefined {
  const { assignment, moveTo } = pod;
  if (node === undefined || pod.ended || pod.leavesAt !== undefined) return undefined;
  const present = assignment && onlyGpu(assignment);
  if (assignment === undefined || present === undefined) {
    const refusal = assignment ? 'it has several GPUs' : 'our scheduler has not placed it';
    return moveTo === undefined ? undefined : { gpu: moveTo, refusal };
  }
  const moving = { pod, assignment, node, present };
  if (assignment.former !== undefined) return whileMoving(moving, assignment.former, isOverdue);
  if (moveTo === undefined) return undefined;
  if (isSame(moveTo, present)) return { annotations: { [ANNOTATION.moveTo]: null } };
  return begin(moving, moveTo);
}

function whileMoving(
  { pod, assignment, node, present }: Moving,
  former: string,
  isOverdue: boolean,
): MoveStep | undefined {
  const { move = 0 } = assignment;
  const { moveTo } = pod;
  if (node.arrivals.get(pod.uid) === move) {
    const { former: _, ...settled } = assignment;
    const isFollowed = moveTo !== undefined && isSame(moveTo, present);
    return written(settled, isFollowed ? { [ANNOTATION.moveTo]: null } : {});
  }
  const back = assignedTo(assignment, former, present);
  if (isOverdue) return { ...written(back, { [ANNOTATION.moveTo]: null }), overdue: present };
  return moveTo !== undefined && isSame(moveTo, former) ? written(back) : undefined;
}

function begin({ pod, assignment, node, present }: Moving, moveTo: string): MoveStep {
  const refuse = (refusal: string) => ({ gpu: moveTo, refusal });
  const find = (uuid: string) => node.gpus.findIndex((gpu) => isSame(gpu.uuid, uuid));
  const [from, to] = [node.gpus[find(present)], node.gpus[find(moveTo)]];
  const reason = whyStays(pod, node, from, to);
  if (reason !== undefined || to === undefined) return refuse(reason ?? '');
  const slots = pod.holding?.get(present) ?? 0;
  const isReserved = node.holders.get(pod.uid)?.holding?.has(to.uuid) === true;
  const free = freeFor(pod, node)[find(moveTo)] ?? 0;
  if (free < slots && !isReserved)
    return refuse(`${Math.max(0, free)} of its slots are free, and the pod has ${slots}`);
  return {
    ...written(assignedTo(assignment, to.uuid, present)),
    second: new Map([[to.uuid, slots]]),
  };
}

function whyStays(
  { demand, problem }: PodRecord,
  { name, movable }: NodeGpus,
  from: Gpu | undefined,
  to: Gpu | undefined,
): string | undefined {
  if (to === undefined) return `node ${name} has no such GPU`;
  if (!movable)
    return (
      `programs of node ${name} cannot move: set node.movable in the values of the chart, ` +
      'and node.hostMemory to more than 0'
    );
  if (from === undefined) return `node ${name} no longer has its GPU`;
  if (demand === undefined) return problem ?? 'its request cannot be read';
  if (demand.needs.filter(({ init }) => !init).length > 1)
    return 'several of its containers have a GPU, and one of them might not be able to move';
  if (!demand.isNamed(to)) return `its annotation ${ANNOTATION.gpuUuid} excludes that GPU`;
  if (from.model.mode === 'concurrent' || to.model.mode === 'concurrent')
    return 'programs in concurrent mode cannot move';
  if (from.model.oversubscribed || to.model.oversubscribed)
    return 'programs cannot move to or from an oversubscribed GPU';
  if (from.model !== to.model)
    return `that GPU is another model: ${to.model.name}, not ${from.model.name}`;
  return to.healthy ? undefined : 'that GPU is unhealthy';
}

/** The number of the move tells the report of its arrival from those of earlier moves. */
function assignedTo(assignment: Assignment, gpu: string, former: string): Assignment {
  const { containers, move = 0 } = assignment;
  return {
    version: 1,
    containers: Object.fromEntries(
      Object.entries(containers).map(([container, assigned]) => [
        container,
        assigned.map((one) => ({ ...one, gpu })),
      ]),
    ),
    ...{ former, move: move + 1 },
  };
}

function written(assignment: Assignment, others: Record<string, null> = {}) {
  return { annotations: { [ANNOTATION.assigned]: JSON.stringify(assignment), ...others } };
}

function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}
