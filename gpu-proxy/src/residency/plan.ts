import type { Machine } from './machine.js';
import { whyStuck } from './stuck.js';
import { sum, type Tenant } from './tenant.js';

/** Memory that begins to move. */
interface Part {
  readonly tenant: Tenant;
  /** Infinity: all that is out enters, and the tenant goes on. */
  readonly bytes: number;
}

/** The next move in each direction. */
interface Plan {
  readonly leave: Part | undefined;
  readonly enter: Part | undefined;
  readonly stuck: ReadonlyMap<string, string>;
}

/** A tenant that gives up room for another one. */
interface Victim {
  readonly tenant: Tenant;
  /** Bytes of room. */
  readonly gain: number;
}

/**
 * Bytes that move at a time. Memory enters where other memory has left, so both directions are in
 * use but for one step.
 */
const STEP = 4 * 2 ** 30;

/**
 * Plans for the waiting tenants, in their order. One tenant at a time moves in each direction: two
 * would share the bandwidth, so the first would be there later. The last tenant that computes
 * leaves when nothing enters, so the GPU idles only while no other tenant could be there.
 */
export function plan(machine: Machine): Plan {
  return new Planner(machine).plan();
}

class Planner {
  readonly #machine: Machine;
  readonly #enters: boolean;
  readonly #leaves: boolean;
  /** Bytes that no tenant and no waiting tenant ahead has. */
  #free: number;
  /** Bytes that will be free when tenants have left, and that nobody ahead needs. */
  #freed: number;
  #leave: Part | undefined;
  #enter: Part | undefined;
  /** Bytes of room that tenants give up for waiting ones, now or after others. */
  readonly #given = new Map<Tenant, number>();
  /** Waiting tenants that get room. */
  readonly #served = new Set<Tenant>();
  /** Waiting tenants whose turn has not come. */
  readonly #ahead: Tenant[] = [];
  /** Waiting tenants that get room before one of them. */
  readonly #overtaking: Tenant[] = [];
  readonly #stuck = new Map<string, string>();

  constructor(machine: Machine) {
    this.#machine = machine;
    const { room, tenants } = machine;
    this.#enters = tenants.some(({ state }) => state === 'entering');
    this.#leaves = tenants.some(({ state }) => state === 'leaving');
    this.#free = room - sum(tenants, ({ reserved }) => reserved);
    this.#freed = sum(tenants, ({ move }) => move?.frees ?? 0);
  }

  plan(): Plan {
    for (const tenant of this.#waiting) this.#serve(tenant);
    return { leave: this.#leave, enter: this.#enter, stuck: this.#stuck };
  }

  get #waiting(): Tenant[] {
    const { now, tenants } = this.#machine;
    return tenants.filter((tenant) => tenant.isWaiting(now)).sort(byTurn);
  }

  #serve(tenant: Tenant): void {
    const why = whyStuck(tenant, this.#machine);
    if (why !== undefined) {
      this.#stuck.set(tenant.id, why);
      return;
    }
    const victims = this.#mayOvertake(tenant) ? this.#victims(tenant) : undefined;
    if (victims === undefined) {
      this.#ahead.push(tenant);
      return;
    }
    this.#served.add(tenant);
    if (this.#ahead.length > 0) this.#overtaking.push(tenant);
    if (!this.#enters && tenant.state === 'out') this.#enter ??= this.#entry(tenant);
    const own = Math.min(tenant.needed, Math.max(0, this.#free));
    const gained = victims.reduce((total, { gain }) => total + gain, 0);
    this.#free -= own;
    this.#freed += gained - (tenant.needed - own);
    for (const { tenant: victim, gain } of victims)
      this.#given.set(victim, (this.#given.get(victim) ?? 0) + gain);
    if (this.#leaves || this.#leave) return;
    const first = victims.find((victim) => !this.#isSpared(victim.tenant));
    this.#leave = first && { tenant: first.tenant, bytes: bytesOf(first) };
  }

  /** All of its memory, or a step of it. */
  #entry(tenant: Tenant): Part | undefined {
    if (tenant.needed <= this.#free) return { tenant, bytes: Number.POSITIVE_INFINITY };
    const bytes = Math.min(Math.max(STEP, tenant.leastEntry), tenant.out);
    return bytes > 0 && bytes <= this.#free ? { tenant, bytes } : undefined;
  }

  /**
   * A tenant may enter before one whose turn comes later only if both fit together with all others
   * that did so. So nobody waits for a tenant that came in later.
   */
  #mayOvertake(tenant: Tenant): boolean {
    const { room, now, tenants } = this.#machine;
    const stubborn = tenants.filter((one) => one.onGpu && one.whyFixed(now) !== undefined);
    return this.#ahead.every((first) => {
      const later = tenants.filter((one) => one.onGpu && one.cameAt >= first.waitsSince);
      const beside = new Set([...stubborn, ...later, ...this.#overtaking, tenant, first]);
      const fixed = sum(
        tenants.filter((one) => !beside.has(one)),
        (one) => (one.onGpu ? 0 : one.fixed),
      );
      return fixed + sum([...beside], ({ terms }) => terms.quota) <= room;
    });
  }

  /**
   * The tenants that give up room for it, no more than needed, in this order:
   * - suspended tenants that have room;
   * - idle tenants, the longest idle or the largest first;
   * - the tenants that had most of the GPU.
   *
   * Undefined: it has to wait.
   */
  #victims(tenant: Tenant): Victim[] | undefined {
    const deficit = tenant.needed - this.#free - this.#freed;
    if (deficit <= 0) return [];
    const { hostMemory, tenants } = this.#machine;
    const chosen: Victim[] = [];
    let host = hostMemory - sum(tenants, ({ hosted }) => hosted);
    for (const candidate of this.#candidates(tenant)) {
      const gain = this.#gainOf(candidate, host);
      if (gain <= 0) continue;
      host -= Math.max(0, candidate.here - candidate.fixed);
      chosen.push({ tenant: candidate, gain });
      if (gainOf(chosen) >= deficit) return only(withoutSpare(chosen, deficit), deficit);
    }
    return undefined;
  }

  /** Bytes of room that it can give up, with so many bytes of host memory for what leaves. */
  #gainOf(tenant: Tenant, host: number): number {
    const { fixed, hosted, out, moving, move } = tenant;
    const here = tenant.here - moving;
    const reserved = tenant.reserved - (move?.frees ?? 0);
    const arena = hosted - out - moving;
    const movable = Math.min(here - fixed, Math.max(0, host) + Math.max(0, arena));
    return reserved - here + Math.max(0, movable) - (this.#given.get(tenant) ?? 0);
  }

  #candidates(waiting: Tenant): Tenant[] {
    const { now, tenants } = this.#machine;
    const movable = tenants.filter((one) => one !== waiting && one.whyFixed(now) === undefined);
    const parked = movable
      .filter(({ state }) => state === 'leaving' || state === 'out')
      .filter((one) => !this.#served.has(one));
    const turns = this.#waiting;
    const resident = movable.filter(({ state }) => state === 'resident');
    const idle = resident.filter((one) => this.#isIdle(one)).sort(byIdleTime);
    const served = resident
      .filter((one) => !this.#isIdle(one) && one.enteredAt + one.stay <= now)
      .filter((one) => one.served >= waiting.served)
      .sort((a, b) => b.served - a.served || a.bytes - b.bytes);
    return [
      ...parked.filter((one) => !turns.includes(one)).sort(byIdleTime),
      ...parked
        .filter((one) => turns.indexOf(one) > turns.indexOf(waiting))
        .sort((a, b) => turns.indexOf(b) - turns.indexOf(a)),
      ...[...idle, ...served].filter((one) => !this.#given.has(one)),
    ];
  }

  #isIdle(tenant: Tenant): boolean {
    return this.#machine.idleFrom(tenant) <= this.#machine.now;
  }

  /** The last one that computes stays until the entering one is there. */
  #isSpared(victim: Tenant): boolean {
    if (victim.parked || this.#isIdle(victim) || !(this.#enters || this.#enter)) return false;
    return !this.#machine.tenants.some(
      (one) => one !== victim && one.state === 'resident' && !this.#isIdle(one),
    );
  }
}

/** Bytes that leave in its next step. What it has reserved beyond its memory is free without. */
function bytesOf({ tenant: { reserved, here }, gain }: Victim): number {
  return Math.min(STEP, Math.max(0, gain - (reserved - here)));
}

/**
 * Order of entry: tenants that have begun to enter, then the least virtual time, the highest
 * priority, the longest wait.
 */
function byTurn(a: Tenant, b: Tenant): number {
  return (
    Number(b.coming) - Number(a.coming) ||
    a.served - b.served ||
    b.terms.priority - a.terms.priority ||
    a.waitsSince - b.waitsSince
  );
}

function byIdleTime(a: Tenant, b: Tenant): number {
  if (a.suspended !== b.suspended) return a.suspended ? -1 : 1;
  return a.usedAt - b.usedAt || b.bytes - a.bytes;
}

/** Leaves out each of them, the last ones first, without which the others are enough. */
function withoutSpare(chosen: readonly Victim[], deficit: number): Victim[] {
  return chosen.reduceRight<Victim[]>(
    (kept, one) => {
      const others = kept.filter((other) => other !== one);
      return gainOf(others) >= deficit ? others : kept;
    },
    [...chosen],
  );
}

/** Each gives up as much as is missing. */
function only(victims: readonly Victim[], deficit: number): Victim[] {
  let missing = deficit;
  return victims.map(({ tenant, gain }) => {
    const given = Math.min(gain, missing);
    missing -= given;
    return { tenant, gain: given };
  });
}

function gainOf(victims: readonly Victim[]): number {
  return victims.reduce((total, { gain }) => total + gain, 0);
}
