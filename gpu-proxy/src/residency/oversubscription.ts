import type { GpuRecord } from '@nvidia-virtual/ledger';
import { OversubscribedGpu, type OversubscribedNode } from './oversubscribed-gpu.js';

interface OversubscriptionOptions {
  readonly node: OversubscribedNode;
  readonly gpus: readonly GpuRecord[];
  isOversubscribed(gpu: GpuRecord): boolean;
  /** Updates the GPU time of allocations. */
  refresh(): Promise<void>;
}

/** Milliseconds. A program whose memory is out waits for the next look at least. */
const INTERVAL = 100;

/** The oversubscribed GPUs of a node, and those that were when an allocation left. */
export class Oversubscription {
  readonly #options: OversubscriptionOptions;
  readonly #gpus = new Map<string, OversubscribedGpu>();
  #timer: NodeJS.Timeout | undefined;
  #looking = false;

  constructor(options: OversubscriptionOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => void this.#look(), INTERVAL).unref();
  }

  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** A move has ended: the next one begins at once. */
  moved(): void {
    void this.#look();
  }

  /** Part of the last five minutes during which memory of the GPU moved. @param gpu its UUID */
  exchangingRatio(gpu: string): number {
    return this.#gpus.get(gpu)?.exchangingRatio(performance.now()) ?? 0;
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    await this.#lookAtAll().finally(() => {
      this.#looking = false;
    });
  }

  async #lookAtAll(): Promise<void> {
    const gpus = this.#options.gpus.filter((gpu) => this.#isManaged(gpu));
    if (gpus.length === 0) return;
    await this.#options.refresh();
    if (this.#timer === undefined) return;
    for (const gpu of gpus) {
      const { uuid } = gpu;
      const managed = this.#gpus.get(uuid) ?? new OversubscribedGpu(gpu, this.#options.node);
      this.#gpus.set(uuid, managed);
      managed.look(performance.now());
    }
  }

  #isManaged(gpu: GpuRecord): boolean {
    const here = this.#options.node
      .allocations()
      .filter(({ specification }) => specification.gpus.includes(gpu.uuid));
    const isOver = this.#options.isOversubscribed(gpu);
    return here.length > 0 && (isOver || here.some(({ evicted }) => evicted));
  }
}
