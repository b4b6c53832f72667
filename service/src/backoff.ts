interface BackoffOptions {
  /** Delay before the first retry in milliseconds. It doubles with each further retry. */
  readonly first: number;
  /** Maximum delay in milliseconds. */
  readonly longest: number;
  /** Shortens each delay at random by up to half, so that clients do not retry simultaneously. */
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

  /** Call after a success. */
  reset(): void {
    this.#next = this.#options.first;
  }
}

/** Schedules attempts with exponential backoff. Its timer does not keep the process alive. */
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

  /** Replaces a pending attempt. */
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

  /** Call after a success: resets the backoff. */
  reset(): void {
    this.#backoff.reset();
  }
}
