import type { InventoryGpu } from '@nvidia-virtual/kubernetes/assignment';
import type { SharingMode } from '@nvidia-virtual/ledger';

/** What GPUs have in common that differ in nothing but their UUID. A cluster has few, so what depends on it alone is worked out once. */
export interface Model {
  /** Counts from 0. */
  readonly id: number;
  readonly name: string;
  /** For comparisons in any case. */
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
