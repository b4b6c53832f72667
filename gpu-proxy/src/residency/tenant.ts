import { Backoff } from '@nvidia-virtual/service/backoff';
import { ExchangeRate } from './exchange-rate.js';

/**
 * State of an allocation:
 * - `out`: it is suspended. Any part of its memory is in host memory.
 * - `leaving`: it is suspended. A part of its memory moves to the host.
 * - `entering`: a part of its memory moves back. If all of it does, the allocation is resumed.
 */
export type State = 'resident' | 'leaving' | 'out' | 'entering';

export interface Terms {
  /** Bytes. Reserved while it is on the GPU, so an allocation within the quota never waits. */
  readonly quota: number;
  /** Its part of the time beside others. */
  readonly weight: number;
  /** Higher ones get more time, as from the arbiter. */
  readonly priority: number;
}

export interface Observation {
  /** Bytes of GPU memory that it has, wherever they are. */
  readonly bytes: number;
  /** The part of them that is in host memory. */
  readonly out: number;
  /** A call of its programs waits for GPU time, or for the memory to be back. */
  readonly waits: boolean;
  /** When it last used GPU time. */
  readonly usedAt: number;
  /** Suspended by command: it stays out until it is resumed by command. */
  readonly suspended: boolean;
}

/** Why its memory cannot leave now. */
export interface Refusal {
  readonly reason: string;
  /** Time of the next attempt. */
  readonly until: number;
}

/** A move that has begun. */
interface PresentMove {
  /** Bytes that are to move. */
  readonly bytes: number;
  /** Bytes that were in host memory when it began. */
  readonly out: number;
  /** Bytes of room that it takes meanwhile, and that become free at the end. */
  readonly reserved: number;
  readonly frees: number;
  /** Whether it was suspended before. */
  readonly parked: boolean;
  /** Whether it goes on afterwards. */
  readonly whole: boolean;
  /** Whether it wants the GPU all the time. */
  readonly wanted: boolean;
}

const SECOND = 1000;
/**
 * A tenant that came in stays at least this many times as long as its memory moved. An exchange of
 * 61 GiB takes 1.3 times as long as that (H200), so with 14, less than a tenth of the time is lost.
 */
const STAY_PER_EXCHANGE = 14;
/** Milliseconds; for exchanges of little memory. */
const LEAST_STAY = 2000;

/** The record of one allocation on one GPU. Times are in milliseconds. */
export class Tenant {
  bytes = 0;
  out = 0;
  waits = false;
  suspended = false;
  usedAt = Number.NEGATIVE_INFINITY;
  /** Bytes that cannot leave, for example arrays; 0 if that is not known. */
  fixed = 0;
  /** The present move. */
  move: PresentMove | undefined;
  /** Moves of fewer bytes bring nothing back, because its pieces of memory are larger. */
  leastEntry = 0;
  /** The most that was out since it was last on the GPU. Its arena stays so large until then. */
  arena = 0;
  /** When it began to enter. */
  cameAt = Number.NEGATIVE_INFINITY;
  /** A part of it has entered, and no other tenant has got ahead. */
  coming = false;
  /** Bytes that have entered since it began to. */
  came = 0;
  /** Milliseconds that its last entry took from others. */
  exchange = 0;
  enteredAt = Number.NEGATIVE_INFINITY;
  waitsSince = 0;
  /** Virtual time: usable time on the GPU, divided by the weight. */
  served = 0;
  /** Whether it competed for the GPU at the last look. */
  competed = false;
  refusal: Refusal | undefined;
  /** Earliest time at which it may enter. */
  entersFrom = 0;
  readonly rate = new ExchangeRate();
  /** Delays of the next attempts after failures. */
  readonly leaving = new Backoff({ first: 5 * SECOND, longest: 300 * SECOND });
  readonly entering = new Backoff({ first: SECOND, longest: 60 * SECOND });

  constructor(
    readonly id: string,
    public terms: Terms,
    public state: State,
  ) {}

  /** Bytes on the GPU. */
  get here(): number {
    return Math.max(0, this.bytes - this.out);
  }

  /** Bytes of the GPU's room that it takes. */
  get reserved(): number {
    return this.move?.reserved ?? (this.state === 'out' ? this.here : this.terms.quota);
  }

  /** Bytes of room that it needs to go on. */
  get needed(): number {
    return this.terms.quota - this.reserved;
  }

  /** Bytes of host memory that it takes. */
  get hosted(): number {
    if (this.state === 'resident') return 0;
    return Math.max(this.arena, this.out + (this.state === 'leaving' ? this.moving : 0));
  }

  /** Bytes that the present move moves. */
  get moving(): number {
    return this.move?.bytes ?? 0;
  }

  /** On the GPU, or about to be. */
  get onGpu(): boolean {
    return this.state === 'resident' || this.state === 'entering';
  }

  /** Suspended, maybe with memory on the GPU. */
  get parked(): boolean {
    return this.state === 'out' || this.move?.parked === true;
  }

  /** Milliseconds that it stays at least after it came in, unless it becomes idle. */
  get stay(): number {
    return Math.max(LEAST_STAY, STAY_PER_EXCHANGE * this.exchange);
  }

  /** Waits for its memory, and may enter. */
  isWaiting(now: number): boolean {
    return this.parked && this.waits && !this.suspended && now >= this.entersFrom;
  }

  /** Why its memory cannot leave now, or undefined. */
  whyFixed(now: number): string | undefined {
    return this.refusal && now < this.refusal.until ? this.refusal.reason : undefined;
  }
}

export function sum(tenants: readonly Tenant[], bytes: (tenant: Tenant) => number): number {
  return tenants.reduce((total, tenant) => total + bytes(tenant), 0);
}
