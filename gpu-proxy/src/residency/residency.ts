import { ExchangeHistory } from './exchange-history.js';
import type { Machine } from './machine.js';
import { plan } from './plan.js';
import { type Observation, type State, Tenant, type Terms } from './tenant.js';
import { effectiveWeights } from './weights.js';

/** Milliseconds without GPU time after which a tenant counts as idle, at least. */
const LEAST_PATIENCE = 1000;
/** A tenant is at most so many stays behind others, when it begins to want the GPU. */
const MOST_BEHIND = 2;

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
  /** Bytes of the tenant that are in host memory now. */
  readonly out: number;
  /** Milliseconds in which memory moved. */
  readonly duration: number;
}

export interface Step {
  readonly id: string;
  /** Bytes that are to leave at least, or to enter at most. */
  readonly bytes: number;
}

export interface Decision {
  /** The tenant that is suspended, if it is not, and memory of which begins to leave. */
  readonly leave: Step | undefined;
  /** The tenant memory of which begins to enter. If all bytes may, it goes on afterwards. */
  readonly enter: Step | undefined;
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
  /** Bytes that have left since a tenant went on. */
  #left = 0;
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

  observe(id: string, { bytes, out, waits, usedAt, suspended }: Observation, now: number): void {
    this.#advance(now);
    const tenant = this.#tenants.get(id);
    if (!tenant) return;
    const changed = bytes !== tenant.bytes;
    Object.assign(tenant, { bytes, out, waits, suspended });
    // Memory that could not leave may have been freed.
    if (changed)
      tenant.fixed = tenant.state === 'resident' ? 0 : Math.min(tenant.fixed, tenant.here);
    tenant.usedAt = Math.max(tenant.usedAt, usedAt);
    tenant.arena = Math.max(tenant.arena, out);
    this.#compete(tenant, now);
  }

  /** Reports a state that no decision has led to. Does nothing if it is the known one. */
  correct(id: string, state: 'resident' | 'out', now: number): void {
    const known = this.#tenants.get(id)?.state;
    if (known === undefined || known === state) return;
    const usedAt = state === 'resident' ? { enteredAt: now, usedAt: now, arena: 0 } : {};
    this.#moved(id, known, { state, ...usedAt }, now);
  }

  /** If less has left than was to, the rest cannot, for example arrays. */
  left(id: string, { out, duration }: Move, now: number): void {
    const { out: before = 0, bytes: moving = 0 } = this.#tenants.get(id)?.move ?? {};
    const arena = Math.max(out, this.#tenants.get(id)?.arena ?? 0);
    const to = { state: 'out', out, arena, refusal: undefined } as const;
    // The tenant wants the GPU even if none of its calls waits yet.
    const waits = this.#tenants.get(id)?.move?.wanted === true;
    const tenant = this.#moved(id, 'leaving', { ...to, waits }, now);
    if (!tenant) return;
    if (out - before < moving) tenant.fixed = tenant.here;
    this.#left += Math.max(0, out - before);
    tenant.leaving.reset();
    tenant.rate.observe(out - before, duration);
  }

  /** Its memory could not leave. It is asked again after a delay that doubles each time. */
  refused(id: string, reason: string, now: number): void {
    const state = this.#tenants.get(id)?.move?.parked ? 'out' : 'resident';
    const tenant = this.#moved(id, 'leaving', { state }, now);
    if (tenant) tenant.refusal = { reason, until: now + tenant.leaving.next() };
  }

  entered(id: string, { out, duration }: Move, now: number): void {
    const move = this.#tenants.get(id)?.move;
    const before = move?.out ?? 0;
    const state = move?.whole ? 'resident' : 'out';
    const tenant = this.#moved(id, 'entering', { state, out }, now);
    if (!tenant) return;
    tenant.came += Math.max(0, before - out);
    tenant.entering.reset();
    tenant.rate.observe(before - out, duration);
    if (move?.whole) this.#goOn(tenant, now);
    else if (out >= before) tenant.leastEntry = 2 * (move?.bytes ?? 0);
  }

  /** The GPU had no room for its memory. It is out, and waits before it tries again. */
  notEntered(id: string, now: number): void {
    const tenant = this.#moved(id, 'entering', { state: 'out', coming: false }, now);
    if (!tenant) return;
    tenant.entersFrom = now + tenant.entering.next();
    this.#compete(tenant, now);
  }

  /** Each tenant that it names counts as moving, until the caller reports the end of the move. */
  decide(now: number): Decision {
    this.#advance(now);
    const { leave, enter, stuck } = plan(this.#machine(now));
    if (leave) this.#beginLeaving(leave.tenant, leave.bytes, now);
    if (enter) this.#beginEntering(enter.tenant, enter.bytes, now);
    return { leave: leave && stepOf(leave), enter: enter && stepOf(enter), stuck };
  }

  /** Whether it was suspended before its present move. */
  isParked(id: string): boolean {
    return this.#tenants.get(id)?.move?.parked === true;
  }

  stateOf(id: string): State | undefined {
    return this.#tenants.get(id)?.state;
  }

  /** Milliseconds that the tenant stays at least after it came in, unless it becomes idle. */
  stayOf(id: string): number {
    return this.#tenants.get(id)?.stay ?? 0;
  }

  /** Share of the last five minutes during which memory moved, 0 to 1. */
  exchangingRatio(now: number): number {
    return this.#history.share(now);
  }

  #machine(now: number): Machine {
    const { room, hostMemory } = this.#limits;
    return {
      ...{ room, hostMemory, now, tenants: [...this.#tenants.values()] },
      idleFrom,
    };
  }

  get #competing(): Tenant[] {
    return [...this.#tenants.values()].filter(({ competed }) => competed);
  }

  #beginLeaving(tenant: Tenant, bytes: number, now: number): void {
    const { parked, reserved, here, out } = tenant;
    const frees = reserved - (here - bytes);
    tenant.state = 'leaving';
    const to = { parked, whole: false, wanted: tenant.competed };
    tenant.move = { bytes, out, reserved, frees, ...to };
    this.#noteMoves(now);
  }

  #beginEntering(tenant: Tenant, bytes: number, now: number): void {
    const whole = bytes === Number.POSITIVE_INFINITY;
    const reserved = whole ? tenant.terms.quota : tenant.here + bytes;
    if (!tenant.coming) Object.assign(tenant, { coming: true, cameAt: now, came: 0 });
    tenant.state = 'entering';
    const { out } = tenant;
    tenant.move = { bytes, out, reserved, frees: 0, parked: !whole, whole, wanted: true };
    tenant.competed = true;
    this.#noteMoves(now);
  }

  /** All of its memory is back. */
  #goOn(tenant: Tenant, now: number): void {
    const exchange = tenant.rate.timeOf(Math.max(tenant.came, this.#left));
    for (const one of this.#tenants.values()) one.coming = false;
    Object.assign(tenant, { enteredAt: now, usedAt: now, leastEntry: 0, arena: 0, exchange });
    this.#left = 0;
    this.#compete(tenant, now);
  }

  /** The move of `id` has ended. Undefined if it is gone, or did not move so. */
  #moved(id: string, from: State, to: Partial<Tenant>, now: number): Tenant | undefined {
    this.#advance(now);
    const tenant = this.#tenants.get(id);
    if (tenant?.state !== from) return undefined;
    Object.assign(tenant, to, { move: undefined });
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
   * first one that competes, so an idle tenant saves up no time. It is at most two stays behind, so
   * a tenant that had the GPU while nobody needed its room does not pay for that.
   */
  #compete(tenant: Tenant, now: number): void {
    const competes =
      tenant.move?.wanted === true ||
      tenant.isWaiting(now) ||
      (tenant.state === 'resident' && now < idleFrom(tenant));
    if (competes && !tenant.competed) {
      const others = this.#competing;
      const first = Math.min(...others.map(({ served }) => served));
      const weights = effectiveWeights([...others, tenant], this.#limits.guarantee);
      const most = first + (MOST_BEHIND * tenant.stay) / (weights.get(tenant) ?? 1);
      if (Number.isFinite(first)) tenant.served = Math.min(Math.max(tenant.served, first), most);
      tenant.waitsSince = now;
    }
    tenant.competed = competes;
  }
}

function stepOf({ tenant, bytes }: { readonly tenant: Tenant; readonly bytes: number }): Step {
  return { id: tenant.id, bytes };
}

/**
 * The time from which a resident tenant is idle, if it uses no GPU time until then. The tenant is
 * given the duration of its exchange: if it leaves too early, it loses at most that time again.
 */
function idleFrom({ suspended, waits, usedAt, exchange }: Tenant): number {
  if (suspended) return Number.NEGATIVE_INFINITY;
  return waits ? Number.POSITIVE_INFINITY : usedAt + Math.max(LEAST_PATIENCE, exchange);
}
