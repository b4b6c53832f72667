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
  readonly mode: SharingMode;
}

const models = new Map<string, Model>();

export function modelOf({ name, slotMemory, slots, mode }: InventoryGpu): Model {
  const key = JSON.stringify([name, slotMemory, slots, mode]);
  const known = models.get(key);
  if (known) return known;
  const model = { id: models.size, name, lowerName: name.toLowerCase(), slotMemory, slots, mode };
  models.set(key, model);
  return model;
}
