/** Bytes per millisecond in one direction. H200: 50 GB/s each while both directions are used. */
const EXPECTED = 50e6;
/** Plausible rates: from PCIe of the third generation to more than any machine has. */
const SLOWEST = 10e6;
const FASTEST = 100e6;
/** Smaller moves are ignored: commands take most of their time. */
const LEAST_BYTES = 256 * 2 ** 20;
/** Weight of the former average at each new observation. */
const KEPT = 0.7;

/**
 * Moving average of the rate at which the memory of one tenant moves. Its workers could move slowly
 * and so pretend long exchanges, so the rate has limits, and tells of this tenant only.
 */
export class ExchangeRate {
  #bytes = EXPECTED * 1000;
  #duration = 1000;

  /** @param duration in milliseconds, without the time in which work ends or room is made */
  observe(bytes: number, duration: number): void {
    if (bytes < LEAST_BYTES || !(duration > 0)) return;
    this.#bytes = this.#bytes * KEPT + bytes;
    this.#duration = this.#duration * KEPT + duration;
  }

  /** Milliseconds that a move of `bytes` takes. */
  timeOf(bytes: number): number {
    const rate = this.#bytes / this.#duration;
    return bytes / Math.min(FASTEST, Math.max(SLOWEST, rate));
  }
}
