import { createHash } from 'node:crypto';
import type { Device } from './protocol.js';

/** How many slots a GPU has, and whether it can be used. */
export interface SlottedGpu {
  readonly uuid: string;
  readonly slots: number;
  /** Why it cannot be used now; empty: it can. */
  readonly unhealthy: string;
}

/** Who has which slots. */
export interface SlotUser {
  readonly slots: readonly string[];
  /** UUIDs; empty as long as no GPU was chosen. */
  readonly gpus: readonly string[];
}

/**
 * The device ids of a GPU's slots. They stay the same for ever, since the kubelet writes them down; but a slot is no place on its GPU: which GPU
 * serves it is settled when a program connects.
 */
export function slotIds({ uuid, slots }: SlottedGpu): string[] {
  const prefix = createHash('sha256').update(uuid).digest('hex').slice(0, 16);
  return Array.from({ length: slots }, (_, index) => `${prefix}-${String(index).padStart(2, '0')}`);
}

/** The GPUs of a node, and who has what of them. */
export interface SlotState {
  readonly gpus: readonly SlottedGpu[];
  /** GPUs that are the node's no more. */
  readonly leaving: readonly SlottedGpu[];
  readonly users: readonly SlotUser[];
}

/** Whether anybody has a slot of this GPU, or runs on it. */
export function isUsed(gpu: SlottedGpu, users: readonly SlotUser[]): boolean {
  const ids = new Set(slotIds(gpu));
  return users.some(({ gpus, slots }) => gpus.includes(gpu.uuid) || slots.some((id) => ids.has(id)));
}

/**
 * All slots of the node with their health: as many are unhealthy as the failed GPUs have. Free ones first, so that nothing new comes to this
 * node; then those of containers that lost a GPU. Which they are changes only for a reason. Of a GPU that leaves, what containers have stays as
 * long as they have it; where they run on another GPU with it, as many of the others are unhealthy.
 * @param former unhealthy until now
 */
export function devicesOf({ gpus, leaving, users }: SlotState, former: ReadonlySet<string>): Device[] {
  const failed = gpus.filter(({ unhealthy }) => unhealthy !== '');
  const lost = new Set(failed.map(({ uuid }) => uuid));
  const taken = new Set(users.flatMap(({ slots }) => slots));
  const hit = new Set(users.filter((user) => user.gpus.some((gpu) => lost.has(gpu))).flatMap(({ slots }) => slots));
  const left = leaving.flatMap(slotIds).filter((id) => taken.has(id));
  const count = failed.reduce((sum, { slots }) => sum + slots, 0) + Math.max(0, left.length - heldOn(leaving, users));
  const ids = [...gpus.flatMap(slotIds), ...left];
  const rank = (id: string) => (taken.has(id) ? (hit.has(id) ? 2 : 4) : 0) + (former.has(id) ? 0 : 1);
  const unhealthy = new Set([...ids].sort((one, other) => rank(one) - rank(other)).slice(0, count));
  return ids.map((id) => ({ ID: id, health: unhealthy.has(id) ? 'Unhealthy' : 'Healthy' }));
}

/** Slots whose containers run on these GPUs, whichever GPU they are named after. */
function heldOn(gpus: readonly SlottedGpu[], users: readonly SlotUser[]): number {
  const uuids = new Set(gpus.map(({ uuid }) => uuid));
  const held = ({ slots, gpus: own }: SlotUser) => (slots.length * own.filter((gpu) => uuids.has(gpu)).length) / Math.max(1, own.length);
  return users.reduce((sum, user) => sum + held(user), 0);
}
