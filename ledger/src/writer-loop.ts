import { setTimeout as delay } from 'node:timers/promises';
import { Backoff } from '@nvidia-virtual/service/backoff';

/** Jitter prevents that all nodes reconnect at the same time. */
const BACKOFF = { first: 100, longest: 1500, jitter: true };

/**
 * Writes the latest value to an external system: at once after a change, again at each renewal,
 * and with backoff after a failure. There is no queue: a value replaces the former one.
 */
export class WriterLoop<T> {
  readonly #write: (wanted: T) => Promise<void>;
  readonly #renewal: number;
  #wanted: { readonly value: T } | undefined;
  /** The last value written. */
  #written: { readonly value: T } | undefined;
  readonly #backoff = new Backoff(BACKOFF);
  #failing = false;
  #stopping = false;
  #running: Promise<void> | undefined;
  #pause = new AbortController();

  /**
   * @param write rejects if it failed, and reports the error itself
   * @param renewal milliseconds between renewals
   */
  constructor(write: (wanted: T) => Promise<void>, { renewal }: { readonly renewal: number }) {
    this.#write = write;
    this.#renewal = renewal;
  }

  get started(): boolean {
    return this.#running !== undefined;
  }

  want(value: T): void {
    this.#wanted = { value };
    this.#running ??= this.#run();
    // During backoff, new values do not shorten the pause.
    if (!this.#failing) this.#pause.abort();
  }

  /** Resolves after the current write, and one attempt to write the latest value. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#pause.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopping || (this.#written !== this.#wanted && !this.#failing)) {
      this.#pause = new AbortController();
      await this.#step();
      if (this.#stopping || (!this.#failing && this.#written !== this.#wanted)) continue;
      await this.#rest(this.#failing ? this.#backoff.next() : this.#renewal);
    }
  }

  async #step(): Promise<void> {
    const wanted = this.#wanted as { readonly value: T };
    try {
      await this.#write(wanted.value);
      this.#written = wanted;
      this.#failing = false;
      this.#backoff.reset();
    } catch {
      this.#failing = true;
    }
  }

  async #rest(milliseconds: number): Promise<void> {
    try {
      await delay(milliseconds, undefined, { signal: this.#pause.signal });
    } catch {
      // Aborted to continue early.
    }
  }
}
