import { createHash } from 'node:crypto';
import type { Device } from './protocol.js';

/** A GPU with its number of slots and its health. */
export interface SlottedGpu {
  readonly uuid: string;
  readonly slots: number;
  /** The reason why it is unhealthy; empty: it is healthy. */
  readonly unhealthy: string;
}

/** A container's slots and GPUs. */
export interface SlotUser {
  readonly slots: readonly string[];
  /** UUIDs; empty until GPUs are chosen. */
  readonly gpus: readonly string[];
}

/**
 * The device ids of a GPU's slots. They never change, because the kubelet stores them. A slot is
 * not bound to its GPU: the GPU is chosen when a program connects.
 */
export function slotIds({ uuid, slots }: SlottedGpu): string[] {
  const prefix = createHash('sha256').update(uuid).digest('hex').slice(0, 16);
  return Array.from({ length: slots }, (_, index) => `${prefix}-${String(index).padStart(2, '0')}`);
}

/** The GPUs of a node and their users. */
export interface SlotState {
  readonly gpus: readonly SlottedGpu[];
  /** GPUs removed from the node by configuration. */
  readonly leaving: readonly SlottedGpu[];
  readonly users: readonly SlotUser[];
}

/** Whether a container has a slot of this GPU, or runs on it. */
export function isUsed(gpu: SlottedGpu, users: readonly SlotUser[]): boolean {
  const ids = new Set(slotIds(gpu));
  return users.some(
    ({ gpus, slots }) => gpus.includes(gpu.uuid) || slots.some((id) => ids.has(id)),
  );
}

/**
 * All slots of the node with their health. The number of unhealthy slots is that of the failed
 * GPUs:
 * - free slots first, so that no new pod gets them, then those of containers on a failed GPU;
 * - the choice is stable: `former` slots stay unhealthy if possible.
 *
 * Slots of a leaving GPU stay while containers have them. If these containers run on another GPU,
 * the same number of other slots is unhealthy.
 * @param former slots that are unhealthy so far
 */
export function devicesOf(
  { gpus, leaving, users }: SlotState,
  former: ReadonlySet<string>,
): Device[] {
  const failed = gpus.filter(({ unhealthy }) => unhealthy !== '');
  const lost = new Set(failed.map(({ uuid }) => uuid));
  const taken = new Set(users.flatMap(({ slots }) => slots));
  const hit = new Set(
    users.filter((user) => user.gpus.some((gpu) => lost.has(gpu))).flatMap(({ slots }) => slots),
  );
  const left = leaving.flatMap(slotIds).filter((id) => taken.has(id));
  const count =
    failed.reduce((sum, { slots }) => sum + slots, 0) +
    Math.max(0, left.length - heldOn(leaving, users));
  const ids = [...gpus.flatMap(slotIds), ...left];
  const rank = (id: string) =>
    (taken.has(id) ? (hit.has(id) ? 2 : 4) : 0) + (former.has(id) ? 0 : 1);
  const unhealthy = new Set([...ids].sort((one, other) => rank(one) - rank(other)).slice(0, count));
  return ids.map((id) => ({ ID: id, health: unhealthy.has(id) ? 'Unhealthy' : 'Healthy' }));
}

/** The number of slots whose containers run on these GPUs, whatever GPU their ids belong to. */
function heldOn(gpus: readonly SlottedGpu[], users: readonly SlotUser[]): number {
  const uuids = new Set(gpus.map(({ uuid }) => uuid));
  const held = ({ slots, gpus: own }: SlotUser) =>
    (slots.length * own.filter((gpu) => uuids.has(gpu)).length) / Math.max(1, own.length);
  return users.reduce((sum, user) => sum + held(user), 0);
}
