import type {
  AllocationSpecification,
  GpuRecord,
  Policy,
  SharingMode,
} from '@nvidia-virtual/ledger';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import { plural } from '@nvidia-virtual/service/plural';

/** A request for GPU resources. */
export interface GpuWish {
  /** Indices or UUIDs; empty: the node chooses one. */
  readonly gpus: readonly string[];
  /** Bytes on each GPU; 0: all remaining memory. */
  readonly memory: number;
  readonly share: number;
  readonly policy: Policy;
  readonly mode: SharingMode;
}

export interface Granted {
  /** UUIDs. */
  readonly gpus: readonly string[];
  /** Bytes on each GPU. */
  readonly memory: number;
}

/**
 * The number of CUDA contexts that the node itself holds on a GPU: one for each warm worker. In
 * concurrent mode there are no warm workers; the MPS server holds one.
 */
export function contextsAside({ mode }: GpuRecord, warmWorkers: number): number {
  return mode === 'concurrent' ? 1 : warmWorkers;
}

/** Memory under MPS cannot leave. */
export function isOversubscribed({ mode }: GpuRecord, factor: number): boolean {
  return mode === 'exclusive' && factor > 1;
}

export interface AdmissionSettings {
  /** The number of warm workers of a GPU; each holds a context. */
  warmWorkers(gpu: GpuRecord): number;
  /** Limit on the quotas of a GPU as a multiple of its memory; 1: it is not oversubscribed. */
  oversubscription(gpu: GpuRecord): number;
  /** Bytes of host memory for GPU memory. */
  hostMemory(): number;
  /** The part of it that suspended allocations of GPUs that are not oversubscribed have. */
  hostLent(): number;
}

/**
 * Admission control. On each GPU, two sums are limited:
 * - quotas, one context for each allocation, and the contexts of warm workers or of the MPS server:
 *   at most the memory of the GPU;
 * - shares of `fixed` allocations: at most 100.
 * On an oversubscribed GPU, the first sum is at most so many times its memory, each quota must fit
 * by itself, and all quotas together must fit into host memory: while one allocation leaves, all
 * others may be out.
 */
export class Admission {
  readonly #gpus: readonly GpuRecord[];
  readonly #settings: AdmissionSettings;

  constructor(gpus: readonly GpuRecord[], settings: AdmissionSettings) {
    this.#gpus = gpus;
    this.#settings = settings;
  }

  /**
   * Returns the GPUs and the memory of a new allocation beside `present`. @throws ProxyError, with
   * the figures, if it does not fit.
   */
  admit(wish: GpuWish, present: readonly AllocationSpecification[]): Granted {
    const gpus = wish.gpus.length > 0 ? this.#named(wish.gpus) : [this.#bestFit(wish, present)];
    if (gpus.length > 1 && wish.mode === 'concurrent')
      throw new ProxyError('CONCURRENT_GPUS', { count: plural(gpus.length, 'GPU') });
    const over = gpus.find((gpu) => this.isOversubscribed(gpu));
    if (over && gpus.length > 1)
      throw new ProxyError('OVERSUBSCRIBED_GPUS', { gpu: describe(over) });
    for (const gpu of gpus) this.#require(gpu, wish, present);
    const memory = wish.memory || Math.min(...gpus.map((gpu) => this.memoryLeft(gpu, present)));
    return { gpus: gpus.map(({ uuid }) => uuid), memory };
  }

  /**
   * The GPU to which an allocation may move, with room for it beside `others`.
   * @param name index or UUID
   * @throws ProxyError GPU_UNKNOWN, ALLOCATION_STAYS; or with the figures, if it does not fit
   */
  admitMove(
    allocation: AllocationSpecification,
    name: string,
    others: readonly AllocationSpecification[],
  ): GpuRecord {
    const { id, gpus } = allocation;
    const [target] = this.#named([name]) as [GpuRecord];
    const present = this.#gpus.find(({ uuid }) => uuid === gpus[0]);
    const reason = this.isOversubscribed(target)
      ? 'that GPU is oversubscribed'
      : whyStays(allocation, present, target);
    if (reason !== undefined)
      throw new ProxyError('ALLOCATION_STAYS', { id, gpu: describe(target), reason });
    this.#require(target, allocation, others);
    return target;
  }

  /** GPUs of the same model. @param gpus of an allocation */
  otherPlaces(gpus: readonly string[]): string[] {
    const present = this.#gpus.find(({ uuid }) => uuid === gpus[0]);
    if (gpus.length !== 1 || !present) return [];
    return this.#gpus
      .filter((gpu) => gpu !== present && isAlike(gpu, present))
      .map(({ uuid }) => uuid);
  }

  /** The largest possible quota of a new allocation, in bytes. Its context is already deducted. */
  memoryLeft(gpu: GpuRecord, present: readonly AllocationSpecification[]): number {
    return Math.max(0, Math.min(this.#gpuLeft(gpu, present), this.#hostLeft(gpu, present)));
  }

  isOversubscribed(gpu: GpuRecord): boolean {
    return isOversubscribed(gpu, this.#settings.oversubscription(gpu));
  }

  /** Bytes of a GPU for the memory of allocations, beside all contexts. */
  roomOf(gpu: GpuRecord, present: readonly AllocationSpecification[]): number {
    const { contexts, warm } = this.#use(gpu, present);
    return Math.max(0, gpu.memory - contexts - warm);
  }

  /** Bytes of host memory that oversubscribed GPUs need whose quotas do not fit on them. */
  hostNeeded(present: readonly AllocationSpecification[]): number {
    const quotas = (gpu: GpuRecord) => this.#use(gpu, present).quotas;
    return this.#gpus
      .filter((gpu) => this.isOversubscribed(gpu) && quotas(gpu) > this.roomOf(gpu, present))
      .reduce((sum, gpu) => sum + quotas(gpu), 0);
  }

  /**
   * @throws ProxyError WARM_WORKERS_NOT_LEFT if the warm workers do not fit beside the
   * allocations.
   */
  checkWarmWorkers(present: readonly AllocationSpecification[]): void {
    for (const gpu of this.#gpus) {
      const { count, quotas, contexts, warm } = this.#use(gpu, present);
      if (this.#settings.warmWorkers(gpu) === 0 || this.#needed(gpu, present) <= gpu.memory)
        continue;
      throw new ProxyError('WARM_WORKERS_NOT_LEFT', {
        gpu: describe(gpu),
        count: this.#settings.warmWorkers(gpu),
        warm: formatMemorySize(warm),
        memory: formatMemorySize(gpu.memory),
        promised: formatMemorySize(quotas + contexts),
        allocations: plural(count, 'allocation'),
      });
    }
  }

  /** Bytes of a GPU that must be there at the same time. */
  #needed(gpu: GpuRecord, present: readonly AllocationSpecification[]): number {
    const { quotas, largest, contexts, warm } = this.#use(gpu, present);
    return (this.isOversubscribed(gpu) ? largest : quotas) + contexts + warm;
  }

  fixedShareLeft(gpu: GpuRecord, present: readonly AllocationSpecification[]): number {
    const fixed = on(gpu, present).filter(({ policy }) => policy === 'fixed');
    return 100 - fixed.reduce((sum, { share }) => sum + share, 0);
  }

  #gpuLeft(gpu: GpuRecord, present: readonly AllocationSpecification[]): number {
    const { quotas, largest } = this.#use(gpu, present);
    const room = this.roomOf(gpu, present) - gpu.contextMemory;
    if (!this.isOversubscribed(gpu)) return room - quotas;
    const more = (this.#settings.oversubscription(gpu) - 1) * gpu.memory;
    return largest > room ? 0 : Math.min(room, Math.floor(more) + room - quotas);
  }

  /** Bytes that fit beside the others without host memory, or the host memory left if larger. */
  #hostLeft(gpu: GpuRecord, present: readonly AllocationSpecification[]): number {
    if (!this.isOversubscribed(gpu)) return Number.POSITIVE_INFINITY;
    const beside = this.roomOf(gpu, present) - gpu.contextMemory - this.#use(gpu, present).quotas;
    return Math.max(
      beside,
      this.#settings.hostMemory() - this.#settings.hostLent() - this.#hostPromised(present),
    );
  }

  /** The quotas of all allocations on oversubscribed GPUs. */
  #hostPromised(present: readonly AllocationSpecification[]): number {
    const over = this.#gpus.filter((gpu) => this.isOversubscribed(gpu));
    return over.reduce((sum, gpu) => sum + this.#use(gpu, present).quotas, 0);
  }

  #use(gpu: GpuRecord, present: readonly AllocationSpecification[]) {
    const allocations = on(gpu, present);
    return {
      count: allocations.length,
      quotas: allocations.reduce((sum, { memory }) => sum + memory, 0),
      largest: Math.max(0, ...allocations.map(({ memory }) => memory)),
      contexts: allocations.length * gpu.contextMemory,
      warm: contextsAside(gpu, this.#settings.warmWorkers(gpu)) * gpu.contextMemory,
    };
  }

  #named(names: readonly string[]): GpuRecord[] {
    const found = names.map((name) => {
      const gpu = this.#gpus.find(
        ({ uuid, index }) => uuid.toLowerCase() === name.toLowerCase() || String(index) === name,
      );
      if (!gpu)
        throw new ProxyError('GPU_UNKNOWN', {
          name,
          gpus: this.#gpus.map(describe).join(', ') || 'none',
        });
      return gpu;
    });
    return [...new Set(found)];
  }

  /** Best fit: the fullest GPU with enough room. Large free blocks stay in one piece. */
  #bestFit(wish: GpuWish, present: readonly AllocationSpecification[]): GpuRecord {
    const left = (gpu: GpuRecord) => this.memoryLeft(gpu, present);
    const fitting = this.#gpus.filter(
      (gpu) => gpu.mode === wish.mode && this.#fits(gpu, wish, present),
    );
    // A request for all remaining memory gets the GPU with the most.
    const [best] = fitting.sort((a, b) =>
      wish.memory > 0 ? left(a) - left(b) : left(b) - left(a),
    );
    if (best) return best;
    const [only, ...others] = this.#gpus.filter((gpu) => gpu.mode === wish.mode);
    if (only && others.length === 0) this.#require(only, wish, present);
    throw new ProxyError('NO_GPU_FITS', {
      asked: asked(wish),
      gpus: this.#gpus.map((gpu) => this.#leftOn(gpu, present)).join('; ') || 'none',
    });
  }

  #fits(gpu: GpuRecord, wish: GpuWish, present: readonly AllocationSpecification[]): boolean {
    const fitsShare = wish.policy === 'burst' || wish.share <= this.fixedShareLeft(gpu, present);
    return fitsShare && Math.max(1, wish.memory) <= this.memoryLeft(gpu, present);
  }

  #require(gpu: GpuRecord, wish: GpuWish, present: readonly AllocationSpecification[]): void {
    if (gpu.mode !== wish.mode)
      throw new ProxyError('GPU_MODE', { gpu: describe(gpu), mode: gpu.mode, asked: wish.mode });
    if (this.#fits(gpu, wish, present)) return;
    const left = this.memoryLeft(gpu, present);
    const shareLeft = this.fixedShareLeft(gpu, present);
    if (Math.max(1, wish.memory) <= left)
      throw new ProxyError('SHARE_NOT_LEFT', {
        gpu: describe(gpu),
        asked: wish.share,
        left: shareLeft,
        promised: 100 - shareLeft,
      });
    const { count, quotas, contexts, warm } = this.#use(gpu, present);
    const asked = wish.memory > 0 ? formatMemorySize(wish.memory) : 'all that is left';
    if (this.#hostLeft(gpu, present) < Math.max(1, wish.memory))
      throw new ProxyError('OVERSUBSCRIPTION_NOT_LEFT', {
        gpu: describe(gpu),
        asked,
        left: formatMemorySize(left),
        host: formatMemorySize(this.#settings.hostMemory()),
        promised: formatMemorySize(this.#hostPromised(present)),
        lent: formatMemorySize(this.#settings.hostLent()),
      });
    throw new ProxyError('MEMORY_NOT_LEFT', {
      gpu: describe(gpu),
      asked,
      left: formatMemorySize(left),
      memory: this.#describeMemory(gpu),
      allocations: plural(count, 'allocation'),
      quotas: formatMemorySize(quotas),
      contexts: formatMemorySize(contexts + gpu.contextMemory),
      warm: formatMemorySize(warm),
    });
  }

  #describeMemory(gpu: GpuRecord): string {
    const memory = formatMemorySize(gpu.memory);
    return this.isOversubscribed(gpu)
      ? `${memory}, oversubscribed ${this.#settings.oversubscription(gpu)} times`
      : memory;
  }

  #leftOn(gpu: GpuRecord, present: readonly AllocationSpecification[]): string {
    const memory = formatMemorySize(this.memoryLeft(gpu, present));
    return (
      `${describe(gpu)} (${gpu.mode}) has ` + `${memory} and ${this.fixedShareLeft(gpu, present)} %`
    );
  }
}

function on(
  gpu: GpuRecord,
  present: readonly AllocationSpecification[],
): AllocationSpecification[] {
  return present.filter(({ gpus, moving }) => gpus.includes(gpu.uuid) || moving === gpu.uuid);
}

/** Whether a program can move between the GPUs. Under MPS, the driver moves nothing. */
function isAlike(one: GpuRecord, other: GpuRecord): boolean {
  const exclusive = one.mode === 'exclusive' && other.mode === 'exclusive';
  return exclusive && one.name === other.name && one.memory === other.memory;
}

function whyStays(
  { gpus, mode, moving }: AllocationSpecification,
  present: GpuRecord | undefined,
  target: GpuRecord,
): string | undefined {
  if (gpus.length !== 1 || !present) return `it has ${plural(gpus.length, 'GPU')}`;
  if (present === target) return 'it is there already';
  if (mode !== 'exclusive' || target.mode !== 'exclusive')
    return 'programs in concurrent mode cannot move';
  if (moving !== undefined) return 'it is moving already';
  if (isAlike(present, target)) return undefined;
  const [here, there] = [present, target].map(
    ({ name, memory }) => `${name} with ${formatMemorySize(memory)}`,
  );
  return `it is on another model: ${here}, not ${there}`;
}

function describe(gpu: GpuRecord): string {
  return `${gpu.index} (${gpu.uuid})`;
}

function asked({ memory, share, policy, mode }: GpuWish): string {
  const size = memory > 0 ? formatMemorySize(memory) : 'any memory';
  return `${size}${policy === 'fixed' ? ` and a fixed share of ${share} %` : ''} in ${mode} mode`;
}
