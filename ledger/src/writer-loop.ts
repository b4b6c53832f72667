import { setTimeout as delay } from 'node:timers/promises';
import { Backoff } from '@nvidia-virtual/service/backoff';

/** With jitter, so that nodes do not reconnect all at once. */
const BACKOFF = { first: 100, longest: 1500, jitter: true };

/**
 * Brings something outside to the state that is wanted: at once when the wish changes, again at
 * each renewal, and after a pause when it failed. There is no queue: a wish replaces the one
 * before.
 */
export class WriterLoop<T> {
  readonly #bring: (wanted: T) => Promise<void>;
  readonly #renewal: number;
  #wanted: { readonly value: T } | undefined;
  /** The wish that was brought last. */
  #brought: { readonly value: T } | undefined;
  readonly #backoff = new Backoff(BACKOFF);
  #failing = false;
  #stopping = false;
  #running: Promise<void> | undefined;
  #pause = new AbortController();

  /**
   * `bring` rejects when it failed; who hears of it is its own business. `renewal` in milliseconds.
   */
  constructor(bring: (wanted: T) => Promise<void>, { renewal }: { readonly renewal: number }) {
    this.#bring = bring;
    this.#renewal = renewal;
  }

  get started(): boolean {
    return this.#running !== undefined;
  }

  want(value: T): void {
    this.#wanted = { value };
    this.#running ??= this.#run();
    // While it fails the pauses stand, however often somebody wishes.
    if (!this.#failing) this.#pause.abort();
  }

  /** Ends when the step that is under way has ended, and the last wish was tried once. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#pause.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopping || (this.#brought !== this.#wanted && !this.#failing)) {
      this.#pause = new AbortController();
      await this.#step();
      if (this.#stopping || (!this.#failing && this.#brought !== this.#wanted)) continue;
      await this.#rest(this.#failing ? this.#backoff.next() : this.#renewal);
    }
  }

  async #step(): Promise<void> {
    const wanted = this.#wanted as { readonly value: T };
    try {
      await this.#bring(wanted.value);
      this.#brought = wanted;
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
      // Woken early.
    }
  }
}
