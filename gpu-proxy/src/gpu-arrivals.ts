import type { GpuRecord } from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import { ProxyError } from './errors.js';
import { selectGpus } from './inventory.js';

export interface GpuArrivalsOptions {
  /** Those that the node has. */
  readonly gpus: readonly GpuRecord[];
  /** Indices or UUIDs of those that it may have; empty: all. */
  readonly selection: readonly string[];
  readonly logger: Logger;
  /** What a node would have that started now. @throws ProxyError why it could not start. */
  survey(): Promise<readonly GpuRecord[]>;
  arrived(): void;
}

/** A survey makes contexts on GPUs that programs use: what failed is not tried at each look. */
const LONGEST_PAUSE_LOOKS = 40;

/**
 * Notices GPUs that were not there when the node started: they had failed, and work again. All that a node promises rests on its inventory, so it
 * has to start anew with them. Where it could not, it goes on without them.
 */
export class GpuArrivals {
  readonly #options: GpuArrivalsOptions;
  /** How many looks are left out still, of how many. */
  #left = 0;
  #pause = 0;

  constructor(options: GpuArrivalsOptions) {
    this.#options = options;
  }

  /** @param listed UUIDs of all GPUs that the driver lists, in its order. */
  async look(listed: ReadonlySet<string>): Promise<void> {
    if (this.#left > 0) {
      this.#left--;
      return;
    }
    const { gpus, selection, logger } = this.#options;
    // An index means another GPU as long as one before it is missing.
    if (selection.some((name) => /^\d+$/.test(name)) && !gpus.every(({ uuid }) => listed.has(uuid))) return;
    const fresh = selectGpus([...listed], selection).filter((uuid) => !gpus.some((gpu) => gpu.uuid === uuid));
    if (fresh.length === 0) {
      this.#pause = 0;
      return;
    }
    const reason = await this.#whyNot(fresh);
    if (reason !== undefined) {
      this.#left = this.#pause = Math.min(LONGEST_PAUSE_LOOKS, this.#pause * 2 + 1);
      logger.error(new ProxyError('GPU_NOT_TAKEN', { gpu: fresh.join(', '), reason }).message);
      return;
    }
    logger.warn(new ProxyError('GPU_ARRIVED', { gpu: fresh.join(', ') }).message);
    this.#options.arrived();
  }

  /** Why a node could not start with them; undefined: it could. */
  async #whyNot(fresh: readonly string[]): Promise<string | undefined> {
    try {
      const gpus = await this.#options.survey();
      return gpus.some(({ uuid }) => fresh.includes(uuid)) ? undefined : 'It is gone again.';
    } catch (error) {
      return (error as Error).message;
    }
  }
}
