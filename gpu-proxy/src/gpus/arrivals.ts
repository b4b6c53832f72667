import type { GpuRecord } from '@nvidia-virtual/ledger';
import { ProxyError } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import { selectGpus } from './inventory.js';

interface GpuArrivalsOptions {
  /** The GPUs of the node. */
  readonly gpus: readonly GpuRecord[];
  /** Indices or UUIDs of the GPUs that the node may use; empty: all. */
  readonly selection: readonly string[];
  readonly logger: Logger;
  /** The inventory of a node that started now. @throws ProxyError if it could not start */
  survey(): Promise<readonly GpuRecord[]>;
  arrived(): void;
}

/** Limit of the backoff. A survey creates contexts on GPUs in use, so failed ones are delayed. */
const LONGEST_PAUSE_LOOKS = 40;

/**
 * Detects GPUs that were missing when the node started, for example because they had failed. The
 * node must restart to add them to its inventory. If the restart would fail, it continues without
 * them.
 */
export class GpuArrivals {
  readonly #options: GpuArrivalsOptions;
  /** Looks still to skip, and the length of this pause. */
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
    // While a GPU is missing, the indices after it name other GPUs.
    if (selection.some((name) => /^\d+$/.test(name)) && !gpus.every(({ uuid }) => listed.has(uuid)))
      return;
    const fresh = selectGpus([...listed], selection).filter(
      (uuid) => !gpus.some((gpu) => gpu.uuid === uuid),
    );
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

  /** The reason why a node could not start with these GPUs; undefined: it could. */
  async #whyNot(fresh: readonly string[]): Promise<string | undefined> {
    try {
      const gpus = await this.#options.survey();
      return gpus.some(({ uuid }) => fresh.includes(uuid)) ? undefined : 'It is gone again.';
    } catch (error) {
      return (error as Error).message;
    }
  }
}
