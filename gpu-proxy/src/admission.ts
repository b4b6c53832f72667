import type { AllocationSpecification, GpuRecord, Policy, SharingMode } from '@nvidia-virtual/ledger';
import { counted } from './counted.js';
import { ProxyError } from './errors.js';
import { formatMemorySize } from './memory-size.js';

/** What somebody asks of the GPUs. */
export interface GpuWish {
  /** Indices or UUIDs; empty: the node chooses one. */
  readonly gpus: readonly string[];
  /** Bytes on each GPU; 0: all that is left. */
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

/** How many contexts the node itself has on a GPU: those of warm workers; in concurrent mode there are none, and the MPS server has one. */
export function contextsAside({ mode }: GpuRecord, warmWorkers: number): number {
  return mode === 'concurrent' ? 1 : warmWorkers;
}

/**
 * Decides what still fits. On each GPU the quotas, one context for each allocation, and the warm workers or the MPS server never pass its memory, and
 * the shares of `fixed` allocations never pass 100.
 */
export class Admission {
  readonly #gpus: readonly GpuRecord[];
  readonly #warmWorkers: (gpu: GpuRecord) => number;

  /** @param warmWorkers how many a GPU has; each holds a context. */
  constructor(gpus: readonly GpuRecord[], warmWorkers: (gpu: GpuRecord) => number) {
    this.#gpus = gpus;
    this.#warmWorkers = warmWorkers;
  }

  /** What a new allocation beside `present` gets. @throws ProxyError, with the figures, when it does not fit. */
  admit(wish: GpuWish, present: readonly AllocationSpecification[]): Granted {
    const gpus = wish.gpus.length > 0 ? this.#named(wish.gpus) : [this.#bestFit(wish, present)];
    if (gpus.length > 1 && wish.mode === 'concurrent') throw new ProxyError('CONCURRENT_GPUS', { count: counted(gpus.length, 'GPU') });
    for (const gpu of gpus) this.#require(gpu, wish, present);
    const memory = wish.memory || Math.min(...gpus.map((gpu) => this.memoryLeft(gpu, present)));
    return { gpus: gpus.map(({ uuid }) => uuid), memory };
  }

  /** What a quota may have at most, after the context that comes with it. */
  memoryLeft(gpu: GpuRecord, present: readonly AllocationSpecification[]): number {
    const { quotas, contexts, warm } = this.#use(gpu, present);
    return Math.max(0, gpu.memory - quotas - contexts - warm - gpu.contextMemory);
  }

  /** @throws ProxyError WARM_WORKERS_NOT_LEFT when the warm workers have no room beside the allocations. */
  checkWarmWorkers(present: readonly AllocationSpecification[]): void {
    for (const gpu of this.#gpus) {
      const { count, quotas, contexts, warm } = this.#use(gpu, present);
      if (this.#warmWorkers(gpu) === 0 || quotas + contexts + warm <= gpu.memory) continue;
      throw new ProxyError('WARM_WORKERS_NOT_LEFT', {
        gpu: describe(gpu),
        count: this.#warmWorkers(gpu),
        warm: formatMemorySize(warm),
        memory: formatMemorySize(gpu.memory),
        promised: formatMemorySize(quotas + contexts),
        allocations: counted(count, 'allocation'),
      });
    }
  }

  fixedShareLeft(gpu: GpuRecord, present: readonly AllocationSpecification[]): number {
    const fixed = on(gpu, present).filter(({ policy }) => policy === 'fixed');
    return 100 - fixed.reduce((sum, { share }) => sum + share, 0);
  }

  #use(gpu: GpuRecord, present: readonly AllocationSpecification[]) {
    const allocations = on(gpu, present);
    return {
      count: allocations.length,
      quotas: allocations.reduce((sum, { memory }) => sum + memory, 0),
      contexts: allocations.length * gpu.contextMemory,
      warm: contextsAside(gpu, this.#warmWorkers(gpu)) * gpu.contextMemory,
    };
  }

  #named(names: readonly string[]): GpuRecord[] {
    const found = names.map((name) => {
      const gpu = this.#gpus.find(({ uuid, index }) => uuid.toLowerCase() === name.toLowerCase() || String(index) === name);
      if (!gpu) throw new ProxyError('GPU_UNKNOWN', { name, gpus: this.#gpus.map(describe).join(', ') || 'none' });
      return gpu;
    });
    return [...new Set(found)];
  }

  /** The fullest GPU that still has it: room stays together where there is most. */
  #bestFit(wish: GpuWish, present: readonly AllocationSpecification[]): GpuRecord {
    const left = (gpu: GpuRecord) => this.memoryLeft(gpu, present);
    const fitting = this.#gpus.filter((gpu) => gpu.mode === wish.mode && this.#fits(gpu, wish, present));
    // Who takes all that is left gets it where most is left.
    const [best] = fitting.sort((a, b) => (wish.memory > 0 ? left(a) - left(b) : left(b) - left(a)));
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
    if (gpu.mode !== wish.mode) throw new ProxyError('GPU_MODE', { gpu: describe(gpu), mode: gpu.mode, asked: wish.mode });
    if (this.#fits(gpu, wish, present)) return;
    const left = this.memoryLeft(gpu, present);
    const shareLeft = this.fixedShareLeft(gpu, present);
    if (Math.max(1, wish.memory) <= left)
      throw new ProxyError('SHARE_NOT_LEFT', { gpu: describe(gpu), asked: wish.share, left: shareLeft, promised: 100 - shareLeft });
    const { count, quotas, contexts, warm } = this.#use(gpu, present);
    throw new ProxyError('MEMORY_NOT_LEFT', {
      gpu: describe(gpu),
      asked: wish.memory > 0 ? formatMemorySize(wish.memory) : 'all that is left',
      left: formatMemorySize(left),
      memory: formatMemorySize(gpu.memory),
      allocations: counted(count, 'allocation'),
      quotas: formatMemorySize(quotas),
      contexts: formatMemorySize(contexts + gpu.contextMemory),
      warm: formatMemorySize(warm),
    });
  }

  #leftOn(gpu: GpuRecord, present: readonly AllocationSpecification[]): string {
    return `${describe(gpu)} (${gpu.mode}) has ${formatMemorySize(this.memoryLeft(gpu, present))} and ${this.fixedShareLeft(gpu, present)} %`;
  }
}

function on(gpu: GpuRecord, present: readonly AllocationSpecification[]): AllocationSpecification[] {
  return present.filter(({ gpus }) => gpus.includes(gpu.uuid));
}

function describe(gpu: GpuRecord): string {
  return `${gpu.index} (${gpu.uuid})`;
}

function asked({ memory, share, policy, mode }: GpuWish): string {
  const size = memory > 0 ? formatMemorySize(memory) : 'any memory';
  return `${size}${policy === 'fixed' ? ` and a fixed share of ${share} %` : ''} in ${mode} mode`;
}
