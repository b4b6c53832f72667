import { ExchangeHistory } from './exchange-history.js';
import { ExchangeRate } from './exchange-rate.js';
import type { Machine } from './machine.js';
import { plan } from './plan.js';
import { type Observation, type State, Tenant, type Terms } from './tenant.js';
import { effectiveWeights } from './weights.js';

/** A tenant that came in stays at least this many times as long as its exchange takes. */
const STAY_PER_EXCHANGE = 10;
/** Milliseconds; for tenants with little memory. */
const LEAST_STAY = 2000;
/** Milliseconds without GPU time after which a tenant counts as idle, at least. */
const LEAST_PATIENCE = 1000;

export interface Limits {
  /** Bytes of the GPU for the memory of allocations. */
  readonly room: number;
  /** Bytes of the host for memory that has left. */
  readonly hostMemory: number;
  /** Part of its share that a tenant keeps beside higher priorities, above 0 and at most 1. */
  readonly guarantee: number;
}

/** A finished move. */
export interface Move {
  /** Bytes that moved. */
  readonly bytes: number;
  /** Milliseconds from the command to its answer. */
  readonly duration: number;
}

export interface Decision {
  /** The tenant whose memory begins to leave. */
  readonly leave: string | undefined;
  /** The tenant whose memory begins to enter. */
  readonly enter: string | undefined;
  /** Waiting tenants that no change of turns helps, with the reason as a sentence. */
  readonly stuck: ReadonlyMap<string, string>;
}

/**
 * Policy of an oversubscribed GPU: decides which allocations have their memory on the GPU, and
 * which in host memory. Pure logic. Time is an argument, in milliseconds, so tests simulate hours
 * instantly. The caller reports what it observes, lets decide several times a second, carries out
 * each decision, and reports its end.
 */
export class Residency {
  #limits: Limits;
  readonly #tenants = new Map<string, Tenant>();
  readonly #outRate = new ExchangeRate();
  readonly #inRate = new ExchangeRate();
  readonly #history = new ExchangeHistory();
  #now = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  set limits(limits: Limits) {
    this.#limits = limits;
  }

  get ids(): string[] {
    return [...this.#tenants.keys()];
  }

  /** Adds a tenant, or changes its terms. A new tenant is out and has no memory yet. */
  put(id: string, terms: Terms, now: number, state: State = 'out'): void {
    this.#advance(now);
    const tenant = this.#tenants.get(id);
    if (tenant) tenant.terms = terms;
    else this.#tenants.set(id, new Tenant(id, terms, state));
  }

  remove(id: string, now: number): void {
    this.#advance(now);
    this.#tenants.delete(id);
    this.#noteMoves(now);
  }

  observe(id: string, { bytes, waits, usedAt, suspended }: Observation, now: number): void {
    this.#advance(now);
    const tenant = this.#tenants.get(id);
    if (!tenant) return;
    // What could not leave may have been freed.
    if (tenant.state === 'resident' && bytes !== tenant.bytes) tenant.remains = 0;
    Object.assign(tenant, { bytes, waits, suspended, usedAt: Math.max(tenant.usedAt, usedAt) });
    this.#compete(tenant, now);
  }

  /** Reports a state that no decision has led to. Does nothing if it is the known one. */
  correct(id: string, state: 'resident' | 'out', now: number): void {
    const known = this.#tenants.get(id)?.state;
    if (known === undefined || known === state) return;
    const usedAt = state === 'resident' ? { enteredAt: now, usedAt: now } : {};
    this.#moved(id, known, { state, ...usedAt }, now);
  }

  /** @param remains bytes that could not leave, for example arrays */
  left(id: string, move: Move, remains: number, now: number): void {
    const tenant = this.#moved(id, 'leaving', { state: 'out', remains, refusal: undefined }, now);
    if (!tenant) return;
    tenant.leaving.reset();
    this.#outRate.observe(move.bytes, move.duration);
  }

  /** Its memory could not leave. It is asked again after a delay that doubles each time. */
  refused(id: string, reason: string, now: number): void {
    const tenant = this.#moved(id, 'leaving', { state: 'resident' }, now);
    if (tenant) tenant.refusal = { reason, until: now + tenant.leaving.next() };
  }

  entered(id: string, move: Move, now: number): void {
    const here = { state: 'resident', enteredAt: now, usedAt: now } as const;
    const tenant = this.#moved(id, 'entering', here, now);
    if (!tenant) return;
    tenant.entering.reset();
    this.#inRate.observe(move.bytes, move.duration);
  }

  /** The GPU had no room for its memory. It is out, and waits before it tries again. */
  notEntered(id: string, now: number): void {
    const tenant = this.#moved(id, 'entering', { state: 'out' }, now);
    if (!tenant) return;
    tenant.entersFrom = now + tenant.entering.next();
    this.#compete(tenant, now);
  }

  /** Each tenant that it names counts as moving, until the caller reports the end of the move. */
  decide(now: number): Decision {
    this.#advance(now);
    const { leave, enter, stuck } = plan(this.#machine(now));
    if (leave) this.#begin(leave, 'leaving', now);
    if (enter) this.#begin(enter, 'entering', now);
    return { leave: leave?.id, enter: enter?.id, stuck };
  }

  stateOf(id: string): State | undefined {
    return this.#tenants.get(id)?.state;
  }

  /** Milliseconds that the tenant stays at least after it came in, unless it becomes idle. */
  stayOf(id: string): number {
    const tenant = this.#tenants.get(id);
    return tenant ? this.#stay(tenant) : 0;
  }

  /** Share of the last five minutes during which memory moved, 0 to 1. */
  exchangingRatio(now: number): number {
    return this.#history.share(now);
  }

  #machine(now: number): Machine {
    const { room, hostMemory } = this.#limits;
    return {
      ...{ room, hostMemory, now, tenants: [...this.#tenants.values()] },
      idleFrom: (tenant) => this.#idleFrom(tenant, now),
      stayEnds: (tenant) => tenant.enteredAt + this.#stay(tenant),
    };
  }

  get #competing(): Tenant[] {
    return [...this.#tenants.values()].filter(({ competed }) => competed);
  }

  #begin(tenant: Tenant, state: 'leaving' | 'entering', now: number): void {
    tenant.state = state;
    tenant.competed = state === 'entering';
    if (state === 'entering') tenant.cameAt = now;
    this.#noteMoves(now);
  }

  /** The move of `id` has ended. Undefined if it is gone, or did not move so. */
  #moved(id: string, from: State, to: Partial<Tenant>, now: number): Tenant | undefined {
    this.#advance(now);
    const tenant = this.#tenants.get(id);
    if (tenant?.state !== from) return undefined;
    Object.assign(tenant, to);
    this.#noteMoves(now);
    this.#compete(tenant, now);
    return tenant;
  }

  #noteMoves(now: number): void {
    const moving = [...this.#tenants.values()].some(
      ({ state, bytes }) => bytes > 0 && (state === 'leaving' || state === 'entering'),
    );
    this.#history.note(moving, now);
  }

  /**
   * Tenants that share the GPU are charged the time that each could use, divided by its weight,
   * whether they used it or not.
   */
  #advance(now: number): void {
    if (now <= this.#now) return;
    const weights = effectiveWeights(this.#competing, this.#limits.guarantee);
    const sharing = this.#competing.filter(({ state }) => state === 'resident');
    const total = sharing.reduce((sum, tenant) => sum + (weights.get(tenant) ?? 0), 0);
    for (const tenant of sharing) tenant.served += (now - this.#now) / total;
    this.#now = now;
    for (const tenant of this.#tenants.values()) this.#compete(tenant, now);
  }

  /**
   * Updates whether it competes for the GPU. A tenant that begins to compete is not ahead of the
   * first one that competes, so an idle tenant saves up no time. It is at most one stay behind, so
   * a tenant that had the GPU while nobody needed its room does not pay for that.
   */
  #compete(tenant: Tenant, now: number): void {
    const competes =
      tenant.state === 'entering' ||
      tenant.isWaiting(now) ||
      (tenant.state === 'resident' && now < this.#idleFrom(tenant, now));
    if (competes && !tenant.competed) {
      const others = this.#competing;
      const first = Math.min(...others.map(({ served }) => served));
      const weights = effectiveWeights([...others, tenant], this.#limits.guarantee);
      const most = first + this.#stay(tenant) / (weights.get(tenant) ?? 1);
      if (Number.isFinite(first)) tenant.served = Math.min(Math.max(tenant.served, first), most);
      tenant.waitsSince = now;
    }
    tenant.competed = competes;
  }

  #exchange({ bytes }: Tenant): number {
    return this.#outRate.timeOf(bytes) + this.#inRate.timeOf(bytes);
  }

  #stay(tenant: Tenant): number {
    return Math.max(LEAST_STAY, STAY_PER_EXCHANGE * this.#exchange(tenant));
  }

  /**
   * When a resident tenant becomes idle, if it uses no GPU time until then. It gets as long as its
   * exchange takes: if it wants the GPU again after that, it has lost at most as much again.
   */
  #idleFrom(tenant: Tenant, now: number): number {
    if (tenant.suspended) return Number.NEGATIVE_INFINITY;
    const used = tenant.waits ? now : tenant.usedAt;
    return used + Math.max(LEAST_PATIENCE, this.#exchange(tenant));
  }
}
