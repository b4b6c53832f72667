import type { Logger } from 'pino';

/** Limit on log lines of an allocation: programs can make their workers log with every call. */
const MOST_LINES = 100;
const MEANWHILE_MS = 60_000;
/** The worker's own limit. Enforced again, because a client may have compromised the worker. */
const LONGEST_LINE = 2048;

/**
 * Rate limit on the logs of an allocation's workers: passes on MOST_LINES a minute, and counts the
 * rest.
 */
export class WorkerLog {
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | undefined;
  #lines = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** @param session logger of the session */
  add(session: Pick<Logger, 'warn'>, line: string): void {
    this.#timer ??= setTimeout(() => this.end(), MEANWHILE_MS).unref();
    if (this.#lines++ < MOST_LINES) session.warn(line.slice(0, LONGEST_LINE));
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#lines - MOST_LINES;
    if (lines > 0)
      this.#logger.warn(
        { lines },
        'more lines of the workers were not logged: they exceeded the rate limit',
      );
    this.#lines = 0;
  }
}
