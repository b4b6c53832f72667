/** Bytes per millisecond of one direction. H200: 50 GB/s each while both directions are used. */
const EXPECTED = 50e6;
/** Smaller moves tell nothing of the rate: commands and the end of work take most of their time. */
const LEAST_BYTES = 256 * 2 ** 20;
/** How much of what was observed counts on with each new observation. */
const KEPT = 0.7;

/** Moving average of the rate at which memory leaves, or enters. */
export class ExchangeRate {
  #bytes = EXPECTED * 1000;
  #duration = 1000;

  /** @param duration in milliseconds, from the command to its answer */
  observe(bytes: number, duration: number): void {
    if (bytes < LEAST_BYTES || !(duration > 0)) return;
    this.#bytes = this.#bytes * KEPT + bytes;
    this.#duration = this.#duration * KEPT + duration;
  }

  /** Milliseconds that a move of `bytes` takes. */
  timeOf(bytes: number): number {
    return (bytes * this.#duration) / this.#bytes;
  }
}
