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

/**
 * All slots of the node with their health: as many are unhealthy as the failed GPUs have. Free ones first, so that nothing new comes to this
 * node; then those of containers that lost a GPU. Which they are changes only for a reason.
 * @param former unhealthy until now
 */
export function devicesOf(gpus: readonly SlottedGpu[], users: readonly SlotUser[], former: ReadonlySet<string>): Device[] {
  const failed = gpus.filter(({ unhealthy }) => unhealthy !== '');
  const count = failed.reduce((sum, { slots }) => sum + slots, 0);
  const lost = new Set(failed.map(({ uuid }) => uuid));
  const taken = new Set(users.flatMap(({ slots }) => slots));
  const hit = new Set(users.filter((user) => user.gpus.some((gpu) => lost.has(gpu))).flatMap(({ slots }) => slots));
  const ids = gpus.flatMap(slotIds);
  const rank = (id: string) => (taken.has(id) ? (hit.has(id) ? 2 : 4) : 0) + (former.has(id) ? 0 : 1);
  const unhealthy = new Set([...ids].sort((one, other) => rank(one) - rank(other)).slice(0, count));
  return ids.map((id) => ({ ID: id, health: unhealthy.has(id) ? 'Unhealthy' : 'Healthy' }));
}
