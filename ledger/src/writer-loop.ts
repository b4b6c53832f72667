import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds between attempts while they fail: doubled up to the most, and up to half of it left to chance, so that nodes do not come all at once. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 1500;

/**
 * Brings something outside to the state that is wanted: at once when the wish changes, again at each renewal, and after a pause when it
 * failed. There is no queue: a wish replaces the one before.
 */
export class WriterLoop<T> {
  readonly #bring: (wanted: T) => Promise<'again' | 'never again'>;
  readonly #renewal: number;
  #wanted: { readonly value: T } | undefined;
  /** The wish that was brought last. */
  #brought: { readonly value: T } | undefined;
  #failures = 0;
  #stopping = false;
  #running: Promise<void> | undefined;
  #pause = new AbortController();

  /** `bring` rejects when it failed; who hears of it is its own business. `renewal` in milliseconds. */
  constructor(bring: (wanted: T) => Promise<'again' | 'never again'>, { renewal }: { readonly renewal: number }) {
    this.#bring = bring;
    this.#renewal = renewal;
  }

  get started(): boolean {
    return this.#running !== undefined;
  }

  get wanted(): T | undefined {
    return this.#wanted?.value;
  }

  want(value: T): void {
    this.#wanted = { value };
    this.#running ??= this.#run();
    // While it fails the pauses stand, however often somebody wishes.
    if (this.#failures === 0) this.#pause.abort();
  }

  /** Ends when the step that is under way has ended, and the last wish was tried once. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#pause.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopping || (this.#brought !== this.#wanted && this.#failures === 0)) {
      this.#pause = new AbortController();
      if (!(await this.#step())) return;
      if (this.#stopping || (this.#failures === 0 && this.#brought !== this.#wanted)) continue;
      await this.#rest(this.#failures === 0 ? this.#renewal : pauseAfter(this.#failures));
    }
  }

  async #step(): Promise<boolean> {
    const wanted = this.#wanted as { readonly value: T };
    try {
      if ((await this.#bring(wanted.value)) === 'never again') return false;
      this.#brought = wanted;
      this.#failures = 0;
    } catch {
      this.#failures++;
    }
    return true;
  }

  async #rest(milliseconds: number): Promise<void> {
    try {
      await delay(milliseconds, undefined, { signal: this.#pause.signal });
    } catch {
      // Woken early.
    }
  }
}

function pauseAfter(failures: number): number {
  const pause = Math.min(FIRST_PAUSE * 2 ** (failures - 1), LONGEST_PAUSE);
  return pause * (1 - Math.random() / 2);
}
