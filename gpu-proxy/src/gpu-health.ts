import type { GpuRecord } from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import { ProxyError, systemReason } from './errors.js';
import type { GpuArrivals } from './gpu-arrivals.js';
import type { Session } from './session.js';

export interface GpuHealthOptions {
  readonly gpus: readonly GpuRecord[];
  readonly logger: Logger;
  readonly everyMs: number;
  /** The UUIDs that the driver lists now, in whose answer no context is involved. @throws ProxyError */
  listed(): Promise<ReadonlySet<string>>;
  /** Looks after GPUs beside those. */
  readonly arrivals: Pick<GpuArrivals, 'look'>;
  /** Undefined when a worker can make a context on the GPU, else why not. */
  whyNoWorker(gpu: GpuRecord): Promise<string | undefined>;
}

/** One worker may die of anything, so that a GPU is suspected only when none in between could start. */
const SUSPICIOUS = 3;
/** A driver that is busy for a moment has lost no GPU. */
const CERTAIN = 2;

/**
 * Which GPUs of the node can be used: the driver lists them, and workers can start on them. Workers that die before they serve are what raises
 * a suspicion; a worker of our own decides, since programs of tenants can make theirs die. What failed is tried again, and comes back.
 */
export class GpuHealth {
  readonly #options: GpuHealthOptions;
  readonly #reasons = new Map<string, string>();
  readonly #missing = new Map<string, number>();
  readonly #failedStarts = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;
  #looking = false;
  #ended = false;

  constructor(options: GpuHealthOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.look(), options.everyMs).unref();
  }

  /** Why the GPU cannot be used: a sentence; undefined: it can. */
  reason({ uuid }: Pick<GpuRecord, 'uuid'>): string | undefined {
    return this.#reasons.get(uuid);
  }

  /** A session of these GPUs ended. */
  noteEnd(session: Session, gpus: readonly string[]): void {
    if (session.killed) return;
    const neverServed = session.died && session.gpu === undefined;
    for (const uuid of gpus) this.#failedStarts.set(uuid, neverServed ? (this.#failedStarts.get(uuid) ?? 0) + 1 : 0);
    if (gpus.some((uuid) => this.#isSuspected(uuid))) void this.look();
  }

  /** Asks the driver, and tries a worker where there is a doubt. */
  async look(): Promise<void> {
    if (this.#looking || this.#ended) return;
    this.#looking = true;
    try {
      const listed = await this.#options.listed().catch((error: ProxyError) => error);
      for (const gpu of this.#options.gpus) this.#judge(gpu, await this.#whyUnusable(gpu, listed));
      if (!(listed instanceof Error) && !this.#ended) await this.#options.arrivals.look(listed);
    } catch (error) {
      this.#options.logger.error(`The health of the GPUs could not be found out: ${systemReason(error)}. It is tried again.`);
    } finally {
      this.#looking = false;
    }
  }

  end(): void {
    this.#ended = true;
    clearInterval(this.#timer);
  }

  async #whyUnusable(gpu: GpuRecord, listed: ReadonlySet<string> | ProxyError): Promise<string | undefined> {
    const seen = !(listed instanceof Error) && listed.has(gpu.uuid);
    this.#missing.set(gpu.uuid, seen ? 0 : (this.#missing.get(gpu.uuid) ?? 0) + 1);
    if (!seen) {
      if ((this.#missing.get(gpu.uuid) ?? 0) < CERTAIN) return this.reason(gpu);
      return listed instanceof Error
        ? new ProxyError('GPU_NOT_LISTED', { reason: listed.message }).message
        : new ProxyError('GPU_LOST').message;
    }
    if (!this.#isSuspected(gpu.uuid) && this.reason(gpu) === undefined) return undefined;
    const why = await this.#options.whyNoWorker(gpu);
    if (why === undefined) this.#failedStarts.set(gpu.uuid, 0);
    return why === undefined ? undefined : new ProxyError('GPU_STARTS_NOTHING', { reason: why }).message;
  }

  #isSuspected(uuid: string): boolean {
    return (this.#failedStarts.get(uuid) ?? 0) >= SUSPICIOUS;
  }

  #judge(gpu: GpuRecord, reason: string | undefined): void {
    const before = this.reason(gpu);
    if (reason === before || this.#ended) return;
    if (reason === undefined) this.#reasons.delete(gpu.uuid);
    else this.#reasons.set(gpu.uuid, reason);
    if (reason === undefined) this.#options.logger.info({ gpu: gpu.uuid }, 'the GPU can be used again');
    else if (before === undefined) this.#options.logger.error({ gpu: gpu.uuid }, reason);
  }
}
