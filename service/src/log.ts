import { destination, type Level, type Logger, levels, pino } from 'pino';
import { ProxyError, systemReason } from './errors.js';

interface LogOptions {
  /** Lines are appended; `-` is standard output; undefined: nowhere. */
  readonly file: string | undefined;
  /** The least important lines that are written. @default info */
  readonly level?: Level;
}

type Destination = ReturnType<typeof destination>;

/** Limit on buffered output while the disk is full. Further lines are lost. */
const MOST_WAITING_BYTES = 1024 * 1024;

/**
 * JSON lines, written at once, so that nothing is lost at an exit. File and level may change while
 * loggers and their children are in use.
 */
export class Log {
  readonly logger: Logger;
  #destination: Destination | undefined;
  #least = levels.values['info'] as number;

  /** @throws ProxyError LOG_NOT_OPENED */
  constructor(options: LogOptions) {
    const log = this;
    const stream = {
      // pino sets lastLevel on a stream that asks for it so. A child has a level of its own, so
      // only here a change reaches all of them.
      [Symbol.for('pino.metadata')]: true,
      lastLevel: 0,
      write(line: string): void {
        if (this.lastLevel >= log.#least) log.#destination?.write(line);
      },
    };
    this.logger = pino(
      { base: null, level: 'trace', timestamp: () => `,"time":"${new Date().toISOString()}"` },
      stream,
    );
    this.reopen(options);
  }

  /**
   * Goes on in this file, which is opened anew even if it is the same: it may have been rotated.
   * @throws ProxyError LOG_NOT_OPENED; nothing changes then.
   */
  reopen({ file, level = 'info' }: LogOptions): void {
    const next = file === undefined ? undefined : openDestination(file);
    this.#destination?.end();
    this.#destination = next;
    this.#least = levels.values[level] as number;
  }
}

/** Logs uncaught exceptions and rejections, which terminate the process. */
export function logUncaught(logger: Logger): void {
  process.once('uncaughtException', (error: unknown) => {
    const stack = error instanceof Error ? error.stack : String(error);
    logger.fatal(
      { stack },
      'gpu-proxy ends because of an error that it should have handled: report it, with these lines',
    );
    process.exit(1);
  });
}

function openDestination(file: string): Destination {
  try {
    const opened = destination({
      dest: file === '-' ? 1 : file,
      sync: true,
      append: true,
      mkdir: false,
      maxLength: MOST_WAITING_BYTES,
    });
    // A log that cannot be written must not terminate the process.
    return opened.on('error', () => {});
  } catch (error) {
    throw new ProxyError('LOG_NOT_OPENED', { path: file, reason: systemReason(error) });
  }
}
