import type { Holding } from '@nvidia-virtual/kube-common/holding';
import type { AllocationSpecification, GpuRecord } from '@nvidia-virtual/ledger';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import { contextsAside } from '../allocations/admission.js';

/** Bytes. With less, not even the kernels of a small model load. */
const LEAST_SLOT_MEMORY = 64 * 2 ** 20;

/** Limit on slots of a GPU: the kubelet gets the list of all slots in one message. */
const MOST_SLOTS = 100;

export interface SlotSize {
  readonly slotsPerGpu: number;
  /** Bytes of a slot on every GPU. Undefined: a slot is one of `slotsPerGpu` equal parts. */
  readonly slotMemory: number | undefined;
}

export interface SlotSettings extends SlotSize {
  warmWorkers(gpu: GpuRecord): number;
}

export interface GpuSlots {
  readonly count: number;
  /** Bytes of GPU memory in one slot. */
  readonly memory: number;
}

/**
 * The slots of a GPU. Each may be an allocation of its own, which needs a context beside its quota.
 * A GPU that has less memory than one slot has no slots.
 */
export function slotsOf(
  gpu: GpuRecord,
  { slotsPerGpu, slotMemory, warmWorkers }: SlotSettings,
): GpuSlots {
  const context = gpu.contextMemory;
  const left = Math.max(0, gpu.memory - contextsAside(gpu, warmWorkers(gpu)) * context);
  if (slotMemory === undefined)
    return {
      count: slotsPerGpu,
      memory: Math.max(0, Math.floor((left - slotsPerGpu * context) / slotsPerGpu)),
    };
  const fitting = Math.floor(left / (slotMemory + context));
  return { count: Math.min(MOST_SLOTS, fitting), memory: slotMemory };
}

/** @throws ProxyError SLOT_MEMORY_SMALL for settings that leave too little to be of use. */
export function checkSlots(gpus: readonly GpuRecord[], settings: SlotSettings): void {
  for (const gpu of gpus) {
    const { count, memory } = slotsOf(gpu, settings);
    if (memory >= LEAST_SLOT_MEMORY) continue;
    throw new ProxyError('SLOT_MEMORY_SMALL', {
      gpu: `${gpu.index} (${gpu.uuid})`,
      memory: formatMemorySize(gpu.memory),
      slots: count,
      slot: formatMemorySize(memory),
      context: formatMemorySize(gpu.contextMemory),
      warm: settings.warmWorkers(gpu),
      least: formatMemorySize(LEAST_SLOT_MEMORY),
    });
  }
}

/**
 * How many slots of a GPU are taken. What our scheduler assigned to a pod of this node is, from
 * before its first program connects until the pod is gone; of other pods, what they have. Two
 * allocations of a pod may have the same slots, one after the other: these count once.
 * @param assigned by UID of the pod
 */
export function slotsTaken(
  gpu: GpuRecord,
  present: readonly AllocationSpecification[],
  assigned: ReadonlyMap<string, Holding>,
): number {
  const promised = [...assigned.values()].reduce(
    (sum, holding) => sum + (holding.get(gpu.uuid) ?? 0),
    0,
  );
  const here = present.filter(
    ({ gpus, owner }) => gpus.includes(gpu.uuid) && !assigned.has(owner?.podUid ?? ''),
  );
  const single = new Set(
    here
      .filter(({ gpus }) => gpus.length === 1)
      .flatMap(({ slots = [], owner }) => slots.map((slot) => `${owner?.podUid} ${slot}`)),
  );
  const spread = here
    .filter(({ gpus }) => gpus.length > 1)
    .map(({ slots = [], gpus }) => slots.length / gpus.length);
  return promised + single.size + spread.reduce((sum, count) => sum + count, 0);
}
