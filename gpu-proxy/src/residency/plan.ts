import type { Machine } from './machine.js';
import { whyStuck } from './stuck.js';
import { sum, type Tenant } from './tenant.js';

/** The next move in each direction. */
interface Plan {
  readonly leave: Tenant | undefined;
  readonly enter: Tenant | undefined;
  readonly stuck: ReadonlyMap<string, string>;
}

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
  #leave: Tenant | undefined;
  #enter: Tenant | undefined;
  /** Residents that leave for a waiting tenant, now or after others. */
  readonly #leaving = new Set<Tenant>();
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
    this.#freed = sum(
      tenants.filter(({ state }) => state === 'leaving'),
      gainOf,
    );
  }

  plan(): Plan {
    const { now, tenants } = this.#machine;
    const waiting = tenants.filter((tenant) => tenant.isWaiting(now)).sort(byTurn);
    for (const tenant of waiting) this.#serve(tenant);
    return { leave: this.#leave, enter: this.#enter, stuck: this.#stuck };
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
    const needed = tenant.gain;
    if (needed <= this.#free && !this.#enters) this.#enter ??= tenant;
    if (this.#ahead.length > 0) this.#overtaking.push(tenant);
    for (const victim of victims) this.#leaving.add(victim);
    const ahead = Math.min(needed, this.#free);
    this.#free -= ahead;
    this.#freed += sum(victims, gainOf) - (needed - ahead);
    if (this.#leaves || this.#leave) return;
    this.#leave = victims.find((victim) => this.#isSpared(victim) === false);
  }

  /**
   * A tenant may enter before one whose turn comes later only if both fit together with all others
   * that did so. So nobody waits for a tenant that came in later.
   */
  #mayOvertake(tenant: Tenant): boolean {
    const { room, now, tenants } = this.#machine;
    const fixed = tenants.filter((one) => one.onGpu && one.whyFixed(now) !== undefined);
    const remains = sum(
      tenants.filter((one) => !one.onGpu && one !== tenant),
      (one) => one.remains,
    );
    return this.#ahead.every((first) => {
      const later = tenants.filter(
        (one) => one.onGpu && one.cameAt >= first.waitsSince && one.state !== 'leaving',
      );
      const beside = new Set([...fixed, ...later, ...this.#overtaking, tenant]);
      return first.gain + remains + sum([...beside], ({ terms }) => terms.quota) <= room;
    });
  }

  /**
   * The residents that must leave for it: idle ones first, the longest idle or the largest first;
   * then those that had most of the GPU. No more than needed. Undefined: it has to wait.
   */
  #victims(tenant: Tenant): Tenant[] | undefined {
    const deficit = tenant.gain - this.#free - this.#freed;
    if (deficit <= 0) return [];
    const chosen: Tenant[] = [];
    let host = this.#machine.hostMemory - sum(this.#machine.tenants, ({ hosted }) => hosted);
    host -= sum([...this.#leaving], ({ bytes }) => bytes);
    for (const candidate of this.#candidates(tenant)) {
      if (candidate.bytes > host) continue;
      host -= candidate.bytes;
      chosen.push(candidate);
      if (sum(chosen, gainOf) >= deficit) return withoutSpare(chosen, deficit);
    }
    return undefined;
  }

  #candidates(waiting: Tenant): Tenant[] {
    const { now, tenants, stayEnds } = this.#machine;
    const movable = tenants.filter(
      (one) =>
        one.state === 'resident' && one.whyFixed(now) === undefined && !this.#leaving.has(one),
    );
    const idle = movable.filter((one) => this.#isIdle(one)).sort(byIdleTime);
    const served = movable
      .filter((one) => !this.#isIdle(one) && stayEnds(one) <= now && one.served >= waiting.served)
      .sort((a, b) => b.served - a.served || a.bytes - b.bytes);
    return [...idle, ...served];
  }

  #isIdle(tenant: Tenant): boolean {
    return this.#machine.idleFrom(tenant) <= this.#machine.now;
  }

  /** The last one that computes stays until the entering one is there. */
  #isSpared(victim: Tenant): boolean {
    if (this.#isIdle(victim) || !(this.#enters || this.#enter)) return false;
    return !this.#machine.tenants.some(
      (one) => one !== victim && one.state === 'resident' && !this.#isIdle(one),
    );
  }
}

/** Least virtual time first, then the highest priority, then the longest wait. */
function byTurn(a: Tenant, b: Tenant): number {
  return a.served - b.served || b.terms.priority - a.terms.priority || a.waitsSince - b.waitsSince;
}

function byIdleTime(a: Tenant, b: Tenant): number {
  if (a.suspended !== b.suspended) return a.suspended ? -1 : 1;
  return a.usedAt - b.usedAt || b.bytes - a.bytes;
}

/** Leaves out each of them, the last ones first, without which the others are enough. */
function withoutSpare(chosen: readonly Tenant[], deficit: number): Tenant[] {
  return chosen.reduceRight<Tenant[]>(
    (kept, one) => {
      const others = kept.filter((other) => other !== one);
      return sum(others, gainOf) >= deficit ? others : kept;
    },
    [...chosen],
  );
}

function gainOf({ gain }: Tenant): number {
  return gain;
}
