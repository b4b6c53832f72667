import { Backoff } from '@nvidia-virtual/service/backoff';

/**
 * Where the memory of an allocation is. `leaving`: on its way to the host, still on the GPU.
 * `entering`: on its way back; its room on the GPU is taken already.
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
  /** Bytes that move when it leaves or enters. */
  readonly bytes: number;
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
  /** It is not asked again before this time. */
  readonly until: number;
}

const SECOND = 1000;

/** The record of one allocation on one GPU. Times are in milliseconds. */
export class Tenant {
  bytes = 0;
  waits = false;
  suspended = false;
  usedAt = Number.NEGATIVE_INFINITY;
  /** Bytes that stay on the GPU while it is out, for example arrays; 0 if that is not known. */
  remains = 0;
  /** When it began to enter. */
  cameAt = Number.NEGATIVE_INFINITY;
  enteredAt = Number.NEGATIVE_INFINITY;
  waitsSince = 0;
  /** Virtual time: usable time on the GPU, divided by the weight. */
  served = 0;
  /** Whether it competed for the GPU at the last look. */
  competed = false;
  refusal: Refusal | undefined;
  /** It does not enter before this time. */
  entersFrom = 0;
  /** Delays of the next attempts after failures. */
  readonly leaving = new Backoff({ first: 5 * SECOND, longest: 300 * SECOND });
  readonly entering = new Backoff({ first: SECOND, longest: 60 * SECOND });

  constructor(
    readonly id: string,
    public terms: Terms,
    public state: State,
  ) {}

  /** Bytes of the GPU's room that it takes. */
  get reserved(): number {
    return this.state === 'out' ? this.remains : this.terms.quota;
  }

  /** Bytes of room that become free when it leaves, and that it needs to enter. */
  get gain(): number {
    return this.terms.quota - this.remains;
  }

  /** Bytes of host memory that it takes. */
  get hosted(): number {
    return this.state === 'resident' ? 0 : Math.max(0, this.bytes - this.remains);
  }

  get onGpu(): boolean {
    return this.state !== 'out';
  }

  /** Waits for its memory, and may enter. */
  isWaiting(now: number): boolean {
    return this.state === 'out' && this.waits && !this.suspended && now >= this.entersFrom;
  }

  /** Why its memory cannot leave now, or undefined. */
  whyFixed(now: number): string | undefined {
    return this.refusal && now < this.refusal.until ? this.refusal.reason : undefined;
  }
}

export function sum(tenants: readonly Tenant[], bytes: (tenant: Tenant) => number): number {
  return tenants.reduce((total, tenant) => total + bytes(tenant), 0);
}
