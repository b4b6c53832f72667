import { destination, type Level, type Logger, levels, pino } from 'pino';
import { ProxyError, systemReason } from './errors.js';

interface LogOptions {
  /** Lines are appended to this file. `-`: standard output; undefined: no log. */
  readonly file: string | undefined;
  /** Minimum level of written lines. @default info */
  readonly level?: Level;
}

type Destination = ReturnType<typeof destination>;

/** Limit on buffered output while the disk is full. Further lines are lost. */
const MAXIMUM_BUFFERED_BYTES = 1024 * 1024;

/**
 * Logs JSON lines synchronously, so that none is lost at exit. File and level may change while
 * loggers and their children are in use.
 */
export class Log {
  readonly logger: Logger;
  #destination: Destination | undefined;
  #minimumLevel = levels.values['info'] as number;

  /** @throws ProxyError LOG_NOT_OPENED */
  constructor(options: LogOptions) {
    const log = this;
    const stream = {
      // With this symbol pino sets lastLevel. Filtering here applies a change of the level to
      // existing children, which copy their parent's level.
      [Symbol.for('pino.metadata')]: true,
      lastLevel: 0,
      write(line: string): void {
        if (this.lastLevel >= log.#minimumLevel) log.#destination?.write(line);
      },
    };
    this.logger = pino(
      { base: null, level: 'trace', timestamp: () => `,"time":"${new Date().toISOString()}"` },
      stream,
    );
    this.reopen(options);
  }

  /**
   * Continues in this file. The same file is opened again too, because it may have been rotated.
   * @throws ProxyError LOG_NOT_OPENED; nothing changes
   */
  reopen({ file, level = 'info' }: LogOptions): void {
    const next = file === undefined ? undefined : openDestination(file);
    this.#destination?.end();
    this.#destination = next;
    this.#minimumLevel = levels.values[level] as number;
  }
}

/** Logs uncaught exceptions and rejections, which terminate the process. */
export function logUncaught(logger: Logger): void {
  process.once('uncaughtException', (error: unknown) => {
    const stack = error instanceof Error ? error.stack : String(error);
    logger.fatal(
      { stack },
      'gpu-proxy exits because of an unhandled error. Please report it with these lines.',
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
      maxLength: MAXIMUM_BUFFERED_BYTES,
    });
    // A log that cannot be written must not terminate the process.
    return opened.on('error', () => {});
  } catch (error) {
    throw new ProxyError('LOG_NOT_OPENED', { path: file, reason: systemReason(error) });
  }
}
