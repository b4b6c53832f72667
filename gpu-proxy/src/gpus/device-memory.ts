import type {
  AllocationSpecification,
  GpuRecord,
  SessionRecord,
  SessionUse,
} from '@nvidia-virtual/ledger';
import type { NvmlReading } from './nvml-monitor.js';

/** Device memory of an allocation's workers. */
export interface ReportedMemory {
  /** Bytes, as NVML reports. */
  readonly reported: number;
  /**
   * Bytes of `reported` that are neither charged to the quota nor reserved by the node. Negative if
   * more is charged than used.
   */
  readonly unaccounted: number;
}

/**
 * Compares the memory of the workers in NVML with the charged memory. The node reserves one context
 * per GPU; the first context of a session is charged to the quota, except in slot 0. Undefined if
 * NVML lists none of the workers: it uses pids of the host.
 */
export function compareMemory(
  allocation: {
    specification: Pick<AllocationSpecification, 'gpus'>;
    sessions: readonly { record: SessionRecord; use: SessionUse }[];
  },
  gpus: readonly GpuRecord[],
  processes: NvmlReading,
): ReportedMemory | undefined {
  const contextOn = (uuid: string) => gpus.find((gpu) => gpu.uuid === uuid)?.contextMemory ?? 0;
  const charged = Math.max(0, ...allocation.specification.gpus.map(contextOn));
  const compared = allocation.sessions.flatMap(({ record, use }) => {
    const byGpu = processes.get(record.worker.pid);
    if (!byGpu) return [];
    const reported = sum([...byGpu.values()].map(({ memory }) => memory));
    const provided = sum([...byGpu.keys()].map(contextOn)) - (record.slot === 0 ? 0 : charged);
    return [{ reported, unaccounted: reported - use.memory - provided }];
  });
  if (compared.length === 0) return undefined;
  return {
    reported: sum(compared.map(({ reported }) => reported)),
    unaccounted: sum(compared.map(({ unaccounted }) => unaccounted)),
  };
}

/**
 * Memory of an allocation's workers on one GPU, and its limit for regular workers. In bytes.
 */
export interface Holding {
  readonly gpu: GpuRecord;
  readonly held: number;
  readonly allowed: number;
}

const MIB = 2 ** 20;
/**
 * Memory that the driver allocates for a session in addition to a context. test/bench/account.py
 * checks it for every program on the H200.
 */
const UNCOUNTED = 64 * MIB;
/** Fraction by which the size of a context may differ between processes. */
const CONTEXT_TOLERANCE = 1 / 8;

/** Bytes by which a session may exceed its charged memory on this GPU. */
export function marginOf({ contextMemory }: Pick<GpuRecord, 'contextMemory'>): number {
  return UNCOUNTED + Math.ceil((contextMemory * CONTEXT_TOLERANCE) / MIB) * MIB;
}

/** Bytes that an allocation may have on a GPU, beside what the driver needs. */
export function quotaOn(
  { uuid }: Pick<GpuRecord, 'uuid'>,
  { gpus, moving, memory }: Pick<AllocationSpecification, 'gpus' | 'moving' | 'memory'>,
): number {
  return gpus.includes(uuid) || moving === uuid ? memory : 0;
}

/**
 * Memory of the allocation's processes on each GPU. The limit is the quota, one context that the
 * node reserves, and a margin for each session. While it moves, that holds on both GPUs. With
 * several GPUs, each session charges one context only, so one context per process is allowed on
 * each. GPUs of other allocations have quota 0.
 * @param pids of its workers and of processes that they started
 * @param most bytes that it may have now; less than the quota if memory has left
 */
export function holdingsOf(
  { gpus, moving, memory }: Pick<AllocationSpecification, 'gpus' | 'moving' | 'memory'>,
  pids: readonly number[],
  inventory: readonly GpuRecord[],
  reading: NvmlReading,
  most = memory,
): Holding[] {
  return inventory.map((gpu) => {
    const uses = pids.flatMap((pid) => reading.get(pid)?.get(gpu.uuid) ?? []);
    const quota = quotaOn(gpu, { gpus, moving, memory: most });
    const contexts = gpus.length > 1 ? uses.length : 1;
    // Each session except the first charges a context to the quota. So the quota limits the number
    // of sessions that get a margin.
    const paid = gpu.contextMemory > 0 ? 1 + Math.floor(memory / gpu.contextMemory) : uses.length;
    const allowed =
      quota + contexts * gpu.contextMemory + Math.min(uses.length, paid) * marginOf(gpu);
    return { gpu, held: sum(uses.map((use) => use.memory)), allowed };
  });
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
