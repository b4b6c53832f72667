interface BackoffOptions {
  /** Milliseconds before the first retry; doubled for each further one. */
  readonly first: number;
  /** Milliseconds. */
  readonly longest: number;
  /** Shortens each delay by up to half at random, so that clients do not retry all at once. */
  readonly jitter?: boolean;
}

/** Exponential backoff. */
export class Backoff {
  readonly #options: BackoffOptions;
  #next: number;

  constructor(options: BackoffOptions) {
    this.#options = options;
    this.#next = options.first;
  }

  /** Milliseconds to wait before the next attempt. */
  next(): number {
    const delay = this.#next;
    this.#next = Math.min(this.#options.longest, delay * 2);
    return this.#options.jitter ? delay * (1 - Math.random() / 2) : delay;
  }

  /** After a success. */
  reset(): void {
    this.#next = this.#options.first;
  }
}

/** Runs an attempt later, with exponential backoff. Does not keep the process alive. */
export class RetryTimer {
  readonly #attempt: () => void;
  readonly #backoff: Backoff;
  #timer: NodeJS.Timeout | undefined;

  constructor(attempt: () => void, options: BackoffOptions) {
    this.#attempt = attempt;
    this.#backoff = new Backoff(options);
  }

  get pending(): boolean {
    return this.#timer !== undefined;
  }

  /** Replaces an attempt that is pending. */
  schedule(): void {
    this.cancel();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#attempt();
    }, this.#backoff.next()).unref();
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** After a success: the next delay is the first one again. */
  reset(): void {
    this.#backoff.reset();
  }
}
