/** Failed starts allowed in a burst, then per second. */
const BURST = 32;
const PER_SECOND = 4;

/**
 * Rate limit (token bucket) on worker starts of an allocation. A start costs the node some
 * milliseconds of CPU time, but costs a client that only connects nothing. A worker that becomes a
 * session returns its token.
 */
export class StartRateLimit {
  readonly #now: () => number;
  #left = BURST;
  #when: number;

  /** @param now milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#when = now();
  }

  /** Milliseconds until a worker may be started. */
  wait(): number {
    this.#refill();
    return Math.max(0, ((1 - this.#left) / PER_SECOND) * 1000);
  }

  take(): void {
    this.#refill();
    this.#left--;
  }

  /** Returns the token of a worker that became a session. */
  giveBack(): void {
    this.#left = Math.min(BURST, this.#left + 1);
  }

  #refill(): void {
    const now = this.#now();
    this.#left = Math.min(BURST, this.#left + ((now - this.#when) / 1000) * PER_SECOND);
    this.#when = now;
  }
}
