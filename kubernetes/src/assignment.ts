import type { SharingMode } from '@nvidia-virtual/ledger';

/** Where the slots of one container lie. */
export interface AssignedGpu {
  readonly gpu: string;
  readonly slots: number;
}

/** Value of the annotation `nvidia-virtual/assigned`, which our scheduler binds with the pod: the GPUs of each container. JSON. */
export interface Assignment {
  readonly version: 1;
  readonly containers: Readonly<Record<string, readonly AssignedGpu[]>>;
}

/** One GPU as the scheduler needs to know it. */
export interface InventoryGpu {
  readonly uuid: string;
  readonly name: string;
  /** Bytes, all of it. */
  readonly memory: number;
  /** Bytes that one slot holds. */
  readonly slotMemory: number;
  readonly slots: number;
  readonly mode: SharingMode;
  readonly healthy: boolean;
}

/** Value of the annotation `nvidia-virtual/inventory` of a node, which its device plugin keeps. JSON. */
export interface Inventory {
  readonly version: 1;
  readonly gpus: readonly InventoryGpu[];
}

/** @returns undefined for what is missing or not of this version. @throws SyntaxError for what is no JSON. */
export function readAssignment(text: string | undefined): Assignment | undefined {
  return readVersion1<Assignment>(text);
}

/** @returns undefined for what is missing or not of this version. @throws SyntaxError for what is no JSON. */
export function readInventory(text: string | undefined): Inventory | undefined {
  return readVersion1<Inventory>(text);
}

function readVersion1<T extends { version: 1 }>(text: string | undefined): T | undefined {
  const value = text === undefined ? undefined : (JSON.parse(text) as { version: number } | null);
  return value?.version === 1 ? (value as T) : undefined;
}
