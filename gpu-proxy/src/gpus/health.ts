import type { GpuRecord } from '@nvidia-virtual/ledger';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import type { Session } from '../sessions/session.js';
import type { GpuArrivals } from './arrivals.js';
import { type XidReport, xidFact } from './xids.js';

interface GpuHealthOptions {
  readonly gpus: readonly GpuRecord[];
  readonly logger: Logger;
  readonly everyMs: number;
  /**
   * The UUIDs that the driver lists now, without creating a context. @throws ProxyError
   */
  listed(): Promise<ReadonlySet<string>>;
  /** Detects further GPUs. */
  readonly arrivals: Pick<GpuArrivals, 'look'>;
  /** Undefined if a worker can create a context on the GPU, otherwise the reason. */
  whyNoWorker(gpu: GpuRecord): Promise<string | undefined>;
}

/**
 * Consecutive failed starts that make a GPU suspected. A single worker can die for any reason.
 */
const SUSPICIOUS = 3;
/** Consecutive failed looks that make a GPU lost. The driver may be busy for a moment. */
const CERTAIN = 2;

/**
 * Health of the node's GPUs: a GPU is healthy if the driver lists it and workers can start on it.
 * Xids, and workers that die before they serve, make it suspected. Then a probe worker decides,
 * because tenants can crash their own workers. An unhealthy GPU is checked again and can recover.
 * After an Xid that requires a reset, it recovers only if it was gone in between.
 */
export class GpuHealth {
  readonly #options: GpuHealthOptions;
  readonly #reasons = new Map<string, string>();
  readonly #missing = new Map<string, number>();
  readonly #failedStarts = new Map<string, number>();
  /** Sentences about GPUs that must be reset. */
  readonly #toReset = new Map<string, string>();
  readonly #timer: NodeJS.Timeout;
  #looking = false;
  #ended = false;

  constructor(options: GpuHealthOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.look(), options.everyMs).unref();
  }

  /** The reason why the GPU is unhealthy, as a sentence; undefined: it is healthy. */
  reason({ uuid }: Pick<GpuRecord, 'uuid'>): string | undefined {
    return this.#reasons.get(uuid);
  }

  /** Counts consecutive failed starts at the end of a session on these GPUs. */
  noteEnd(session: Session, gpus: readonly string[]): void {
    if (session.killed) return;
    const neverServed = session.died && session.gpu === undefined;
    for (const uuid of gpus)
      this.#failedStarts.set(uuid, neverServed ? (this.#failedStarts.get(uuid) ?? 0) + 1 : 0);
    if (gpus.some((uuid) => this.#isSuspected(uuid))) void this.look();
  }

  /**
   * Acts on an Xid. A probe waits for the next look, so that a tenant that causes Xids cannot cause
   * probes at a higher rate.
   */
  noteXid({ gpu: uuid, xid }: XidReport): void {
    const { meaning, consequence } = xidFact(xid);
    if (consequence === 'program') return;
    this.#failedStarts.set(uuid, SUSPICIOUS);
    if (consequence === 'probe') return;
    this.#toReset.set(uuid, new ProxyError('GPU_NEEDS_RESET', { xid, meaning }).message);
    for (const gpu of this.#options.gpus)
      if (gpu.uuid === uuid) this.#judge(gpu, this.#toReset.get(uuid));
  }

  /** Lists the GPUs, and starts a probe worker on suspected and unhealthy ones. */
  async look(): Promise<void> {
    if (this.#looking || this.#ended) return;
    this.#looking = true;
    try {
      const listed = await this.#options.listed().catch((error: ProxyError) => error);
      for (const gpu of this.#options.gpus) this.#judge(gpu, await this.#whyUnusable(gpu, listed));
      if (!(listed instanceof Error) && !this.#ended) await this.#options.arrivals.look(listed);
    } catch (error) {
      this.#options.logger.error(
        `The health of the GPUs could not be checked: ${systemReason(error)}. gpu-proxy retries.`,
      );
    } finally {
      this.#looking = false;
    }
  }

  end(): void {
    this.#ended = true;
    clearInterval(this.#timer);
  }

  async #whyUnusable(
    gpu: GpuRecord,
    listed: ReadonlySet<string> | ProxyError,
  ): Promise<string | undefined> {
    const seen = !(listed instanceof Error) && listed.has(gpu.uuid);
    this.#missing.set(gpu.uuid, seen ? 0 : (this.#missing.get(gpu.uuid) ?? 0) + 1);
    if (!seen) {
      if ((this.#missing.get(gpu.uuid) ?? 0) < CERTAIN) return this.reason(gpu);
      if (!(listed instanceof Error)) this.#toReset.delete(gpu.uuid);
      return listed instanceof Error
        ? new ProxyError('GPU_NOT_LISTED', { reason: listed.message }).message
        : new ProxyError('GPU_LOST').message;
    }
    const toReset = this.#toReset.get(gpu.uuid);
    if (toReset !== undefined) return toReset;
    if (!this.#isSuspected(gpu.uuid) && this.reason(gpu) === undefined) return undefined;
    const why = await this.#options.whyNoWorker(gpu);
    if (why === undefined || isFull(why)) this.#failedStarts.set(gpu.uuid, 0);
    return why === undefined || isFull(why)
      ? undefined
      : new ProxyError('GPU_STARTS_NOTHING', { reason: why }).message;
  }

  #isSuspected(uuid: string): boolean {
    return (this.#failedStarts.get(uuid) ?? 0) >= SUSPICIOUS;
  }

  #judge(gpu: GpuRecord, reason: string | undefined): void {
    const before = this.reason(gpu);
    if (reason === before || this.#ended) return;
    if (reason === undefined) this.#reasons.delete(gpu.uuid);
    else this.#reasons.set(gpu.uuid, reason);
    if (reason === undefined)
      this.#options.logger.info({ gpu: gpu.uuid }, 'the GPU can be used again');
    else if (before === undefined) this.#options.logger.error({ gpu: gpu.uuid }, reason);
  }
}

/** A GPU without memory for another context answers, so it has not failed. */
function isFull(reason: string): boolean {
  return reason.includes('CUDA_ERROR_OUT_OF_MEMORY');
}
