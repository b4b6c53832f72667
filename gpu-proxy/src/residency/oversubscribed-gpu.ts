import type { AllocationSpecification, GpuRecord, TimeUse } from '@nvidia-virtual/ledger';
import { ProxyError } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import type { Allocation } from '../allocations/allocation.js';
import { Residency } from './residency.js';

/** The functions of the node that the policy of a GPU uses. */
export interface OversubscribedNode {
  readonly logger: Logger;
  /** Bytes of the GPU for the memory of allocations. */
  roomOf(gpu: GpuRecord): number;
  /** Bytes of host memory for GPU memory. */
  hostMemory(): number;
  /** Percent of its share that an allocation keeps beside higher priorities. */
  guaranteedShare(): number;
  allocations(): readonly Allocation[];
  timeOf(allocation: Allocation): TimeUse;
  /**
   * Suspends it, if it is not suspended, and takes so many bytes from the GPU at least.
   * @returns milliseconds in which memory moved. @throws ProxyError
   */
  evict(allocation: Allocation, bytes: number): Promise<number>;
  /**
   * Gives so many bytes back at most; all: it goes on.
   * @returns milliseconds in which memory moved. @throws ProxyError
   */
  admit(allocation: Allocation, bytes: number): Promise<number>;
  /** A move has ended, and another one may begin. */
  moved(): void;
  /** Reports an error to the user of an allocation. */
  trouble(allocation: AllocationSpecification, error: ProxyError): void;
}

/** Message to the user of a waiting allocation. The log has the details. */
const OTHERS_KEEP =
  'Other allocations of the GPU keep its memory; the log of gpu-proxy says which.';

/** Progress of an allocation at the last look, and the time of its latest progress. */
interface Activity {
  readonly done: number;
  readonly at: number;
}

/** Carries out the policy of one oversubscribed GPU. Times are in milliseconds. */
export class OversubscribedGpu {
  readonly #gpu: GpuRecord;
  readonly #node: OversubscribedNode;
  readonly #policy: Residency;
  readonly #activity = new Map<string, Activity>();
  /** Sentences about waiting allocations that were told, by id. */
  readonly #told = new Map<string, Set<string>>();
  readonly #moving = new Set<string>();

  constructor(gpu: GpuRecord, node: OversubscribedNode) {
    this.#gpu = gpu;
    this.#node = node;
    this.#policy = new Residency(this.#limits);
  }

  /** Share of the last five minutes during which memory moved, 0 to 1. */
  exchangingRatio(now: number): number {
    return this.#policy.exchangingRatio(now);
  }

  /** Observes the allocations, and begins the next moves. */
  look(now: number): void {
    const present = new Map(this.#allocations.map((allocation) => [allocation.id, allocation]));
    this.#policy.limits = this.#limits;
    for (const id of this.#policy.ids) if (!present.has(id)) this.#forget(id, now);
    for (const allocation of present.values()) this.#observe(allocation, now);
    const { leave, enter, stuck } = this.#policy.decide(now);
    const [leaving, entering] = [present.get(leave?.id ?? ''), present.get(enter?.id ?? '')];
    if (leaving && leave) void this.#move(leaving, () => this.#evict(leaving, leave.bytes));
    if (entering && enter) void this.#move(entering, () => this.#admit(entering, enter.bytes));
    this.#tell(stuck, present);
  }

  /** Memory that has left other GPUs takes host memory, too. */
  get #limits() {
    const others = this.#node.allocations().filter((one) => !this.#isHere(one));
    const out = others.reduce((sum, { outBytes }) => sum + outBytes, 0);
    return {
      room: this.#node.roomOf(this.#gpu),
      hostMemory: Math.max(0, this.#node.hostMemory() - out),
      guarantee: Math.max(0.01, this.#node.guaranteedShare() / 100),
    };
  }

  get #allocations(): Allocation[] {
    return this.#node.allocations().filter((allocation) => this.#isHere(allocation));
  }

  #isHere({ specification }: Allocation): boolean {
    return specification.gpus.includes(this.#gpu.uuid);
  }

  #forget(id: string, now: number): void {
    this.#policy.remove(id, now);
    this.#activity.delete(id);
    this.#told.delete(id);
  }

  #observe(allocation: Allocation, now: number): void {
    const { id, suspended, waits } = allocation;
    const { memory, share, priority } = allocation.specification;
    const terms = { quota: memory, weight: share, priority };
    const state = allocation.state === 'out' ? 'out' : 'resident';
    this.#policy.put(id, terms, now, state);
    // A command moves memory, too.
    if (!this.#moving.has(id)) this.#policy.correct(id, state, now);
    const usedAt = this.#usedAt(allocation, now);
    // The workers write how much is used.
    const bytes = Math.min(allocation.memoryUsed, memory);
    const out = outOf(allocation);
    this.#policy.observe(id, { bytes, out, waits, usedAt, suspended }, now);
  }

  /** When it last used GPU time, or waited for it beside others. */
  #usedAt(allocation: Allocation, now: number): number {
    const { granted, waited, overrun } = this.#node.timeOf(allocation);
    const calls = allocation.sessions.reduce((sum, { figures }) => {
      const { launches, memsets, bytesCopied } = figures;
      const { hostToDevice, deviceToHost, deviceToDevice } = bytesCopied;
      return sum + launches + memsets + hostToDevice + deviceToHost + deviceToDevice;
    }, 0);
    const done = granted + waited + overrun + calls;
    const before = this.#activity.get(allocation.id);
    if (before?.done === done) return before.at;
    this.#activity.set(allocation.id, { done, at: now });
    return now;
  }

  /** The next step begins at once. */
  async #move({ id }: Allocation, move: () => Promise<void>): Promise<void> {
    this.#moving.add(id);
    await move().finally(() => this.#moving.delete(id));
    this.#node.moved();
  }

  async #evict(allocation: Allocation, bytes: number): Promise<void> {
    const { id } = allocation;
    let duration = 0;
    try {
      duration = await this.#node.evict(allocation, bytes);
    } catch (error) {
      this.#node.logger.warn({ allocation: id }, (error as Error).message);
      const reason = (error as Error).message.replace(/\.$/, '');
      // After MEMORY_NOT_BACK, it is out.
      if (allocation.state !== 'out' || this.#policy.isParked(id))
        return this.#policy.refused(id, reason, performance.now());
    }
    this.#policy.left(id, { out: outOf(allocation), duration }, performance.now());
  }

  async #admit(allocation: Allocation, bytes: number): Promise<void> {
    const { id } = allocation;
    try {
      const duration = await this.#node.admit(allocation, bytes);
      this.#policy.entered(id, { out: outOf(allocation), duration }, performance.now());
    } catch (error) {
      this.#node.logger.warn({ allocation: id }, (error as Error).message);
      this.#policy.notEntered(id, performance.now());
    }
  }

  #tell(stuck: ReadonlyMap<string, string>, present: ReadonlyMap<string, Allocation>): void {
    // While another allocation is asked again to leave, none is stuck.
    for (const id of this.#told.keys()) {
      const { state, waits } = present.get(id) ?? {};
      if (state !== 'out' || !waits) this.#told.delete(id);
    }
    for (const [id, reason] of stuck) {
      const allocation = present.get(id);
      const before = this.#told.get(id) ?? new Set();
      if (!allocation || before.has(reason)) continue;
      this.#told.set(id, before.add(reason));
      const told = (why: string) => new ProxyError('TURN_NOT_COMING', { id, reason: why });
      this.#node.logger.warn({ allocation: id }, told(reason).message);
      // The reason names other tenants.
      this.#node.trouble(allocation.specification, told(OTHERS_KEEP));
    }
  }
}

/** Bytes of its memory in the host. Arenas have whole pages of small allocations. */
function outOf({ outBytes, memoryUsed }: Allocation): number {
  return Math.min(outBytes, memoryUsed);
}
