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
      /** UUID that the pod asks for; or of its GPU, if that is drained. */
      readonly gpu: string;
      readonly refusal: string;
      readonly drained?: boolean;
    };

/** See MoveTime. */
interface MoveLimits {
  /** It has not arrived in time, so it goes back. */
  readonly isOverdue: boolean;
  /** It has held slots of two GPUs for long, so its requests are refused for now. */
  readonly rests: boolean;
}

/** A bound pod, its assignment, and its node. */
interface Moving {
  readonly pod: PodRecord;
  readonly assignment: Assignment;
  readonly node: NodeGpus;
  /** UUID of its GPU. */
  readonly present: string;
  readonly limits: MoveLimits;
}

const NO_LIMITS: MoveLimits = { isOverdue: false, rests: false };
const RESTS =
  'its latest moves took more than 5 minutes, in which it held slots of two GPUs, ' +
  'so it stays for up to 30 minutes';

/**
 * A pod moves if it asks for it, or if its GPU is drained. It does so in two steps: its assignment
 * names the new GPU and the former one, and the pod holds slots of both. When the node reports that
 * all its programs are on the new GPU, the former one is dropped. A user who asks for the former
 * GPU meanwhile exchanges the two. A pod that is being deleted ends its move, because its programs
 * may go on for as long as its tenant chose, with slots of both.
 * @returns undefined: there is nothing to do now
 */
export function nextStep(
  pod: PodRecord,
  node: NodeGpus | undefined,
  limits = NO_LIMITS,
): MoveStep | undefined {
  const { assignment, moveTo } = pod;
  if (node === undefined || pod.ended) return undefined;
  if (pod.leavesAt !== undefined && assignment?.former === undefined) return undefined;
  const present = assignment && onlyGpu(assignment);
  if (assignment === undefined || present === undefined) {
    const refusal = assignment ? 'it has several GPUs' : 'our scheduler has not placed it';
    if (moveTo !== undefined) return { gpu: moveTo, refusal };
    const drained = node.gpus.find((gpu) => gpu.drained && pod.holding?.has(gpu.uuid));
    return drained && { gpu: drained.uuid, refusal, drained: true };
  }
  const moving = { pod, assignment, node, present, limits };
  if (assignment.former !== undefined) return whileMoving(moving, assignment.former);
  if (moveTo !== undefined && isSame(moveTo, present))
    return { annotations: { [ANNOTATION.moveTo]: null } };
  const asked = moveTo === undefined ? undefined : begin(moving, moveTo);
  // A GPU that it cannot get does not keep it on a drained one.
  const leaves = isDrained(node, present) && (asked === undefined || 'refusal' in asked);
  return leaves ? leaveDrained(moving) : asked;
}

function whileMoving(
  { pod, assignment, node, present, limits }: Moving,
  former: string,
): MoveStep | undefined {
  const { move = 0 } = assignment;
  const { moveTo } = pod;
  if (node.arrivals.get(pod.uid) === move) {
    const { former: _, ...settled } = assignment;
    const isFollowed = moveTo !== undefined && isSame(moveTo, present);
    return written(settled, isFollowed ? { [ANNOTATION.moveTo]: null } : {});
  }
  const back = assignedTo(assignment, former, present);
  if (limits.isOverdue)
    return { ...written(back, { [ANNOTATION.moveTo]: null }), overdue: present };
  // A controller's pod would be evicted, although its programs may still be on the other GPU.
  if (!isHealthy(node, present) && isHealthy(node, former)) return written(back);
  const goesBack = moveTo !== undefined && isSame(moveTo, former) && !isDrained(node, former);
  return goesBack && !limits.rests ? written(back) : undefined;
}

/** Moves to the fullest GPU with room, so that large free blocks stay in one piece. */
function leaveDrained(moving: Moving): MoveStep {
  const { pod, node, present } = moving;
  const free = freeFor(pod, node);
  const held = node.holders.get(pod.uid)?.holding;
  // An earlier attempt whose outcome is unknown goes on to the GPU that is reserved.
  const rank = ({ uuid }: Gpu, index: number) => (held?.has(uuid) ? -1 : (free[index] ?? 0));
  const steps = node.gpus
    .map((gpu, index) => ({ gpu, rank: rank(gpu, index) }))
    .filter(({ gpu }) => !isSame(gpu.uuid, present))
    .sort((one, other) => one.rank - other.rank)
    .map(({ gpu }) => begin(moving, gpu.uuid));
  const refusals = steps.flatMap((step) => ('refusal' in step ? step : []));
  const next = steps.find((step) => !('refusal' in step));
  if (next) return next;
  const reasons = new Set(refusals.map(({ refusal }) => refusal));
  const refusal =
    reasons.size > 1
      ? refusals.map((each) => `GPU ${each.gpu}: ${each.refusal}`).join('; ')
      : ([...reasons][0] ?? `node ${node.name} has no other GPU`);
  return { gpu: present, refusal, drained: true };
}

function isHealthy({ gpus }: NodeGpus, uuid: string): boolean {
  return gpus.some((gpu) => gpu.healthy && isSame(gpu.uuid, uuid));
}

function isDrained({ gpus }: NodeGpus, uuid: string): boolean {
  return gpus.some((gpu) => gpu.drained && isSame(gpu.uuid, uuid));
}

function begin({ pod, assignment, node, present, limits }: Moving, moveTo: string): MoveStep {
  const refuse = (refusal: string) => ({ gpu: moveTo, refusal });
  if (limits.rests) return refuse(RESTS);
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
  if (to.drained) return 'that GPU is drained';
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
