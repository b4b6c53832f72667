import type { Holding } from '@nvidia-virtual/kube-common/holding';
import type { AllocationSpecification, GpuRecord } from '@nvidia-virtual/ledger';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import { contextsAside } from '../allocations/admission.js';

/** Bytes. With less, not even the kernels of a small model load. */
const LEAST_SLOT_MEMORY = 64 * 2 ** 20;

export interface SlotSettings {
  readonly slotsPerGpu: number;
  warmWorkers(gpu: GpuRecord): number;
}

/**
 * Bytes of GPU memory in one slot. Each slot may be an allocation of its own, which needs a context
 * beside its quota.
 */
export function slotMemory(gpu: GpuRecord, { slotsPerGpu, warmWorkers }: SlotSettings): number {
  const contexts = (slotsPerGpu + contextsAside(gpu, warmWorkers(gpu))) * gpu.contextMemory;
  return Math.max(0, Math.floor((gpu.memory - contexts) / slotsPerGpu));
}

/** @throws ProxyError SLOT_MEMORY_SMALL for settings that leave too little to be of use. */
export function checkSlots(gpus: readonly GpuRecord[], settings: SlotSettings): void {
  for (const gpu of gpus) {
    const memory = slotMemory(gpu, settings);
    if (memory >= LEAST_SLOT_MEMORY) continue;
    throw new ProxyError('SLOT_MEMORY_SMALL', {
      gpu: `${gpu.index} (${gpu.uuid})`,
      memory: formatMemorySize(gpu.memory),
      slots: settings.slotsPerGpu,
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
