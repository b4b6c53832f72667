import type { Logger } from 'pino';

const QUIET_MS = 1000;

/**
 * Rate limit on logged refusals: logs the first at once, then the number of further ones once a
 * second. A client that connects in a loop cannot fill the log.
 */
export class RefusalLog {
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | undefined;
  #more = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  add(refusal: Error): void {
    if (this.#timer) {
      this.#more++;
      return;
    }
    this.#logger.error(refusal.message);
    this.#timer = setTimeout(() => this.end(), QUIET_MS).unref();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#more > 0)
      this.#logger.error(
        { connections: this.#more },
        'more connections were refused for the same reason',
      );
    this.#more = 0;
  }
}
