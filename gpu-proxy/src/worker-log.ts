import type { Logger } from 'pino';

/** Programs can make their workers say something with every call, and programs come and go. */
const MOST_LINES = 100;
const MEANWHILE_MS = 60_000;
/** As the worker has it; one that was taken over may write what it likes. */
const LONGEST_LINE = 2048;

/** What the workers of an allocation say in their own logs: so many lines a minute, and of the others how many there were. */
export class WorkerLog {
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | undefined;
  #lines = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** @param session its logger. */
  add(session: Pick<Logger, 'warn'>, line: string): void {
    this.#timer ??= setTimeout(() => this.end(), MEANWHILE_MS).unref();
    if (this.#lines++ < MOST_LINES) session.warn(line.slice(0, LONGEST_LINE));
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#lines - MOST_LINES;
    if (lines > 0) this.#logger.warn({ lines }, 'the workers said more, which is not logged: their programs made them say too much');
    this.#lines = 0;
  }
}
