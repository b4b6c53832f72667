import type { GpuRecord } from '@nvidia-virtual/ledger';
import { WarmWorker, type WarmWorkersOptions } from '../workers/warm-workers.js';

/** Timeout for a hanging driver. Natively a context takes a third of a second. */
const PATIENCE_MS = 60_000;

/** Starts a worker and lets it create a context, as each worker of a program does. */
export class GpuProbe {
  readonly #options: WarmWorkersOptions;
  readonly #patienceMs: number;
  /** Killed workers that still exist, by GPU. A new one would hang, too. */
  readonly #hanging = new Map<string, WarmWorker>();

  constructor(options: WarmWorkersOptions, patienceMs = PATIENCE_MS) {
    this.#options = options;
    this.#patienceMs = patienceMs;
  }

  /** Undefined if a worker can start on the GPU, otherwise the reason. */
  async whyNoWorker(gpu: GpuRecord): Promise<string | undefined> {
    const former = this.#hanging.get(gpu.uuid);
    if (former)
      return (
        `worker ${former.identity.pid}, which made the previous check, hangs and cannot ` +
        `be ended`
      );
    return new Promise((resolve) => {
      const settle = (reason: string | undefined) => {
        clearInterval(looks);
        clearTimeout(patience);
        worker.dismiss();
        resolve(reason);
      };
      const worker = new WarmWorker(gpu, this.#options, (reason) => {
        this.#hanging.delete(gpu.uuid);
        settle(reason);
      });
      const looks = setInterval(() => worker.warm && settle(undefined), 50);
      const patience = setTimeout(() => {
        this.#hanging.set(gpu.uuid, worker);
        worker.kill();
        settle(`a worker has no context after ${this.#patienceMs / 1000} s`);
      }, this.#patienceMs);
    });
  }
}
