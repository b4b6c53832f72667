import type { InventoryGpu } from '@nvidia-virtual/kube-common/assignment';
import type { SharingMode } from '@nvidia-virtual/ledger';

/**
 * The common properties of GPUs that differ only in UUID, health and use. A cluster has few models,
 * so results that depend on the model alone are cached.
 */
export interface Model {
  /** Counts from 0. */
  readonly id: number;
  readonly name: string;
  /** For case-insensitive comparison. */
  readonly lowerName: string;
  readonly slotMemory: number;
  readonly slots: number;
  /** Slots that one container can have of it: all, unless it is oversubscribed. */
  readonly mostSlots: number;
  /** A container with several GPUs cannot use it. */
  readonly oversubscribed: boolean;
  readonly mode: SharingMode;
}

const models = new Map<string, Model>();

export function modelOf({ name, slotMemory, slots, mostSlots, mode }: InventoryGpu): Model {
  const key = JSON.stringify([name, slotMemory, slots, mostSlots, mode]);
  const known = models.get(key);
  if (known) return known;
  const model = {
    ...{ id: models.size, name, lowerName: name.toLowerCase(), slotMemory, slots, mode },
    mostSlots: mostSlots ?? slots,
    oversubscribed: mostSlots !== undefined,
  };
  models.set(key, model);
  return model;
}
