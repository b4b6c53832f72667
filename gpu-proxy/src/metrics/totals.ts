import type { NodeSnapshot, SessionRecord, SessionUse } from '@nvidia-virtual/ledger';

/** How many round trips took at least 2^i and less than 2^(i+1) nanoseconds in the worker, i = 0 to 31. */
export type RoundTrips = readonly number[];
const ROUND_TRIP_BUCKETS = 32;

/** What the sessions of an allocation did, also those that ended while this proxy ran: it never falls while the allocation lives. */
export interface Totals {
  readonly launches: number;
  readonly bytesCopied: SessionUse['bytesCopied'];
  readonly faults: number;
  readonly roundTrips: RoundTrips;
}

/** What was told, by allocation; in metrics.json. */
export type SavedTotals = Readonly<Record<string, SavedSums>>;
interface SavedSums {
  readonly gone: Counters;
  /** Sessions in `gone` whose directories may still be there. */
  readonly ended: readonly number[];
  /** What the others had done when they were last seen, by number: they may be gone before this is written again. */
  readonly live?: Readonly<Record<number, Counters>>;
}

/** Keeps for each allocation what its sessions did, also those that are gone. */
export class TotalsKeeper {
  readonly #allocations: Map<string, SessionSums>;

  /** @param before what an earlier proxy kept. */
  constructor(before: SavedTotals = {}) {
    this.#allocations = new Map(Object.entries(before).map(([id, saved]) => [id, new SessionSums(saved)]));
  }

  get saved(): SavedTotals {
    return Object.fromEntries([...this.#allocations].map(([id, sums]) => [id, sums.saved]));
  }

  /** Takes a snapshot in. What it no longer names is forgotten. */
  observe({ allocations }: NodeSnapshot, roundTripsOf: (session: SessionRecord) => RoundTrips): void {
    const present = new Set(allocations.map(({ specification }) => specification.id));
    for (const id of this.#allocations.keys()) if (!present.has(id)) this.#allocations.delete(id);
    for (const { specification, sessions } of allocations) {
      const live = sessions.map(({ record, use }) => [record.number, toCounters(use, roundTripsOf(record))] as const);
      this.#sumsOf(specification.id).see(new Map(live));
    }
  }

  /** A session is over, and this is the last that its files said. False when that is known already. */
  end({ allocation, number }: SessionRecord, use: SessionUse, roundTrips: RoundTrips): boolean {
    return this.#sumsOf(allocation).end(number, toCounters(use, roundTrips));
  }

  totalsOf(allocation: string): Totals {
    const { total } = this.#sumsOf(allocation);
    const [launches = 0, faults = 0, hostToDevice = 0, deviceToHost = 0, deviceToDevice = 0, ...roundTrips] = total;
    return { launches, faults, bytesCopied: { hostToDevice, deviceToHost, deviceToDevice }, roundTrips };
  }

  #sumsOf(allocation: string): SessionSums {
    const sums = this.#allocations.get(allocation) ?? new SessionSums();
    this.#allocations.set(allocation, sums);
    return sums;
  }
}

type Counters = readonly number[];

function toCounters({ launches, faults, bytesCopied }: SessionUse, roundTrips: RoundTrips): Counters {
  const { hostToDevice, deviceToHost, deviceToDevice } = bytesCopied;
  const buckets = Array.from({ length: ROUND_TRIP_BUCKETS }, (_, bucket) => roundTrips[bucket] ?? 0);
  return [launches, faults, hostToDevice, deviceToHost, deviceToDevice, ...buckets];
}

/** The sums over the sessions of one allocation. */
class SessionSums {
  #gone: Counters;
  readonly #live: Map<number, Counters>;
  /** Sessions that ended, as long as a snapshot that was taken before may still name them. */
  readonly #ended: Set<number>;

  constructor({ gone, ended, live = {} }: SavedSums = { gone: [], ended: [] }) {
    this.#gone = gone;
    this.#ended = new Set(ended);
    this.#live = new Map(Object.entries(live).map(([number, counters]) => [Number(number), counters]));
  }

  get saved(): SavedSums {
    return { gone: this.#gone, ended: [...this.#ended], live: Object.fromEntries(this.#live) };
  }

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

  /** A worker writes its figures itself, so they are not trusted to rise. */
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
