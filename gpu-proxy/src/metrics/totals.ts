import type { NodeSnapshot, SessionRecord, SessionUse } from '@nvidia-virtual/ledger';

/**
 * Histogram: element i counts round trips of at least 2^i and less than 2^(i+1) nanoseconds in the
 * worker, i = 0 to 31.
 */
export type RoundTrips = readonly number[];
const ROUND_TRIP_BUCKETS = 32;

/**
 * Totals over the sessions of an allocation, including ended ones. They never decrease while this
 * gpu-proxy runs.
 */
export interface Totals {
  readonly launches: number;
  readonly bytesCopied: SessionUse['bytesCopied'];
  readonly faults: number;
  readonly roundTrips: RoundTrips;
}

/** Keeps the totals of each allocation, including ended sessions. */
export class TotalsKeeper {
  readonly #allocations = new Map<string, SessionSums>();

  /** Adds a snapshot. Forgets allocations that it no longer contains. */
  observe(
    { allocations }: NodeSnapshot,
    roundTripsOf: (session: SessionRecord) => RoundTrips,
  ): void {
    const present = new Set(allocations.map(({ specification }) => specification.id));
    for (const id of this.#allocations.keys()) if (!present.has(id)) this.#allocations.delete(id);
    for (const { specification, sessions } of allocations) {
      const live = sessions.map(
        ({ record, use }) => [record.number, toCounters(use, roundTripsOf(record))] as const,
      );
      this.#sumsOf(specification.id).see(new Map(live));
    }
  }

  /**
   * Records the final figures of an ended session. False if already recorded.
   */
  end({ allocation, number }: SessionRecord, use: SessionUse, roundTrips: RoundTrips): boolean {
    return this.#sumsOf(allocation).end(number, toCounters(use, roundTrips));
  }

  totalsOf(allocation: string): Totals {
    const { total } = this.#sumsOf(allocation);
    const [
      launches = 0,
      faults = 0,
      hostToDevice = 0,
      deviceToHost = 0,
      deviceToDevice = 0,
      ...roundTrips
    ] = total;
    return {
      launches,
      faults,
      bytesCopied: { hostToDevice, deviceToHost, deviceToDevice },
      roundTrips,
    };
  }

  #sumsOf(allocation: string): SessionSums {
    const sums = this.#allocations.get(allocation) ?? new SessionSums();
    this.#allocations.set(allocation, sums);
    return sums;
  }
}

type Counters = readonly number[];

function toCounters(
  { launches, faults, bytesCopied }: SessionUse,
  roundTrips: RoundTrips,
): Counters {
  const { hostToDevice, deviceToHost, deviceToDevice } = bytesCopied;
  const buckets = Array.from(
    { length: ROUND_TRIP_BUCKETS },
    (_, bucket) => roundTrips[bucket] ?? 0,
  );
  return [launches, faults, hostToDevice, deviceToHost, deviceToDevice, ...buckets];
}

/** The sums over the sessions of one allocation. */
class SessionSums {
  #gone: Counters = [];
  readonly #live = new Map<number, Counters>();
  /** Ended sessions that an earlier snapshot may still contain. */
  readonly #ended = new Set<number>();

  get total(): Counters {
    return [...this.#live.values()].reduce(add, this.#gone);
  }

  see(sessions: ReadonlyMap<number, Counters>): void {
    for (const number of this.#ended) if (!sessions.has(number)) this.#ended.delete(number);
    for (const [number, counters] of sessions) this.#take(number, counters);
    for (const number of this.#live.keys()) if (!sessions.has(number)) this.#settle(number);
  }

  end(number: number, counters: Counters): boolean {
    if (this.#ended.has(number)) return false;
    this.#take(number, counters);
    this.#settle(number);
    this.#ended.add(number);
    return true;
  }

  /** Workers write their figures and are not trusted, so decreases are ignored. */
  #take(number: number, counters: Counters): void {
    if (this.#ended.has(number)) return;
    const former = this.#live.get(number) ?? [];
    const highest = counters.map((counter, index) => Math.max(counter, former[index] ?? 0));
    this.#live.set(number, highest);
  }

  #settle(number: number): void {
    this.#gone = add(this.#gone, this.#live.get(number) ?? []);
    this.#live.delete(number);
  }
}

function add(a: Counters, b: Counters): Counters {
  const [longer, shorter] = a.length >= b.length ? [a, b] : [b, a];
  return longer.map((value, index) => value + (shorter[index] ?? 0));
}
