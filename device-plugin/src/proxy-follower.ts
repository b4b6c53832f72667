import type { Inventory } from '@nvidia-virtual/kube-common/assignment';
import { AdminClient } from '@nvidia-virtual/node-state/admin/client';
import type { GpuMessage } from '@nvidia-virtual/node-state/admin/messages';
import type { KnownGpu, Listing } from './known-gpus.js';

const INTERVAL_MS = 2000;
/** Polling interval until the first answer: without it no slots can be offered. */
const FIRST_INTERVAL_MS = 250;

/** The fields of the inventory about pods. */
export type PodReport = Required<Pick<Inventory, 'arrivals' | 'placed'>>;

interface ProxyFollowerOptions {
  readonly state: string;
  told(listing: Listing, pods: PodReport): void;
  away(reason: string): void;
}

/** Polls gpu-proxy, which may be unavailable, for its GPUs and their health. */
export class ProxyFollower {
  readonly #options: ProxyFollowerOptions;
  #client: AdminClient | undefined;
  #timer: NodeJS.Timeout | undefined;
  #answered = false;
  #ended = false;

  constructor(options: ProxyFollowerOptions) {
    this.#options = options;
  }

  start(): void {
    void this.#ask().then(() => {
      if (!this.#ended)
        this.#timer = setTimeout(
          () => this.start(),
          this.#answered ? INTERVAL_MS : FIRST_INTERVAL_MS,
        );
    });
  }

  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#client?.close();
  }

  async #ask(): Promise<void> {
    try {
      this.#client ??= await AdminClient.connect(this.#options.state);
      const { gpus, selection, movable, ...told } = await this.#client.call('listGpus', {});
      if (this.#ended) return;
      this.#answered = true;
      const { arrivals, placed } = told;
      this.#options.told({ gpus: gpus.map(knownGpu), selection, movable }, { arrivals, placed });
    } catch (error) {
      this.#client?.close();
      this.#client = undefined;
      if (!this.#ended) this.#options.away((error as Error).message);
    }
  }
}

function knownGpu({
  uuid,
  name,
  memoryBytes,
  slotMemoryBytes,
  slots,
  mostSlots,
  mode,
  unhealthy,
}: GpuMessage): KnownGpu {
  const words = {
    mode: mode === 'SHARING_MODE_CONCURRENT' ? 'concurrent' : 'exclusive',
    unhealthy,
  } as const;
  return {
    ...{ uuid, name, memory: memoryBytes, slotMemory: slotMemoryBytes, slots, ...words },
    ...(mostSlots !== undefined && { mostSlots }),
  };
}
