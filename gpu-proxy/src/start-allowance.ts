/** So many connections may come to nothing at once, and so many more each second; who connects beyond waits. */
const MOST = 32;
const PER_SECOND = 4;

/**
 * How many workers an allocation may start. Starting one costs the node some milliseconds of a processor, and whoever connects and never says
 * hello pays nothing for it; a program that does gets its start back.
 */
export class StartAllowance {
  readonly #now: () => number;
  #left = MOST;
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

  /** A worker is started. */
  take(): void {
    this.#refill();
    this.#left--;
  }

  /** What was started became a session. */
  giveBack(): void {
    this.#left = Math.min(MOST, this.#left + 1);
  }

  #refill(): void {
    const now = this.#now();
    this.#left = Math.min(MOST, this.#left + ((now - this.#when) / 1000) * PER_SECOND);
    this.#when = now;
  }
}
