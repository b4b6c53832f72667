import type { Holding } from '@nvidia-virtual/kube-common/holding';
import type { AllocationSpecification, GpuRecord } from '@nvidia-virtual/ledger';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import { contextsAside, isOversubscribed } from '../allocations/admission.js';

/** Bytes. With less, not even the kernels of a small model load. */
const LEAST_SLOT_MEMORY = 64 * 2 ** 20;

/**
 * Limit on slots of a GPU that is not oversubscribed: the kubelet gets the list of all slots in one
 * message. Four times as many of 16 GPUs are a tenth of what it accepts.
 */
const MOST_SLOTS = 100;

export interface SlotSize {
  readonly slotsPerGpu: number;
  /** Bytes of a slot on every GPU. Undefined: a slot is one of `slotsPerGpu` equal parts. */
  readonly slotMemory: number | undefined;
}

export interface SlotSettings extends SlotSize {
  warmWorkers(gpu: GpuRecord): number;
  /** Limit on the quotas of a GPU as a multiple of its memory; 1: it is not oversubscribed. */
  oversubscription(gpu: GpuRecord): number;
}

interface GpuSlots {
  readonly count: number;
  /** Bytes of GPU memory in one slot. */
  readonly memory: number;
  /** The slots that one container can have on an oversubscribed GPU. Undefined: all. */
  readonly most?: number;
}

/**
 * The slots of a GPU. Each may be an allocation of its own, which needs a context beside its quota.
 * A GPU that has less memory than one slot has no slots. On an oversubscribed GPU, there are more
 * slots. Equal parts are smaller there if the contexts of more allocations need the room.
 */
export function slotsOf(gpu: GpuRecord, settings: SlotSettings): GpuSlots {
  const own = ownSlots(gpu, settings);
  if (!isOversubscribed(gpu, settings.oversubscription(gpu))) return own;
  const count = Math.floor(own.count * settings.oversubscription(gpu));
  const contexts = (count - own.count + 1) * gpu.contextMemory;
  const part = Math.floor((leftBeside(gpu, settings) - contexts) / own.count);
  const memory = settings.slotMemory ?? Math.max(0, Math.min(own.memory, part));
  return { count, memory, most: mostSlots(gpu, settings, { ...own, memory }, count) };
}

/**
 * The most slots of one container: all its memory is on the GPU at a time, beside the contexts of
 * allocations that have one slot of the others each.
 */
function mostSlots(
  gpu: GpuRecord,
  settings: SlotSettings,
  { count: fitting, memory }: GpuSlots,
  count: number,
): number {
  const left = leftBeside(gpu, settings);
  const fits = (slots: number) => slots * memory + (count - slots + 1) * gpu.contextMemory <= left;
  for (let slots = fitting; slots > 0; slots--) if (fits(slots) && fits(1)) return slots;
  return 0;
}

function leftBeside(gpu: GpuRecord, { warmWorkers }: SlotSettings): number {
  return Math.max(0, gpu.memory - contextsAside(gpu, warmWorkers(gpu)) * gpu.contextMemory);
}

function ownSlots(gpu: GpuRecord, settings: SlotSettings): GpuSlots {
  const { slotsPerGpu, slotMemory } = settings;
  const context = gpu.contextMemory;
  const left = leftBeside(gpu, settings);
  if (slotMemory === undefined)
    return {
      count: slotsPerGpu,
      memory: Math.max(0, Math.floor((left - slotsPerGpu * context) / slotsPerGpu)),
    };
  const fitting = Math.floor(left / (slotMemory + context));
  return { count: Math.min(MOST_SLOTS, fitting), memory: slotMemory };
}

/** Bytes of host memory for the memory of all slots of oversubscribed GPUs. */
export function hostMemoryOfSlots(gpus: readonly GpuRecord[], settings: SlotSettings): number {
  return gpus
    .filter((gpu) => isOversubscribed(gpu, settings.oversubscription(gpu)))
    .map((gpu) => slotsOf(gpu, settings))
    .reduce((sum, { count, memory }) => sum + count * memory, 0);
}

/**
 * Slots are promised to pods, so there must be host memory for the memory of all of them.
 * @throws ProxyError OVERSUBSCRIPTION_HOST
 */
export function checkHostMemory(
  gpus: readonly GpuRecord[],
  settings: SlotSettings,
  hostMemory: number,
): void {
  const needed = hostMemoryOfSlots(gpus, settings);
  if (needed <= hostMemory) return;
  throw new ProxyError('OVERSUBSCRIPTION_HOST', {
    needed: formatMemorySize(needed),
    limit: formatMemorySize(hostMemory),
  });
}

/**
 * @throws ProxyError SLOT_MEMORY_SMALL, OVERSUBSCRIPTION_SLOTS for settings that leave too little
 * to be of use.
 */
export function checkSlots(gpus: readonly GpuRecord[], settings: SlotSettings): void {
  for (const gpu of gpus) {
    const { count, memory, most } = slotsOf(gpu, settings);
    if (most === 0 && count > 0)
      throw new ProxyError('OVERSUBSCRIPTION_SLOTS', {
        gpu: `${gpu.index} (${gpu.uuid})`,
        slots: count,
        context: formatMemorySize(gpu.contextMemory),
        memory: formatMemorySize(gpu.memory),
      });
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
 * The number of taken slots of a GPU. Slots that our scheduler assigned to a pod of this node count
 * until the pod is gone, even before its first program connects. Of other pods, the slots of their
 * allocations count. Two allocations of a pod that have the same slots in turn count once.
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
