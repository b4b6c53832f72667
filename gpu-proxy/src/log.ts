import type { AllocationSpecification } from '@nvidia-virtual/ledger';
import { destination, type Level, type Logger, levels, pino } from 'pino';
import { ProxyError, systemReason } from './errors.js';

export interface LogOptions {
  /** Lines are appended; `-` is standard output; undefined: nowhere. */
  readonly file: string | undefined;
  /** The least important lines that are written. @default info */
  readonly level?: Level;
}

type Destination = ReturnType<typeof destination>;

/** Where a disk is full, this much is kept until it is not; what comes then is lost. */
const MOST_WAITING_BYTES = 1024 * 1024;

/** JSON lines, written at once, so that nothing is lost at an exit. File and level may change while loggers and their children are in use. */
export class Log {
  readonly logger: Logger;
  #destination: Destination | undefined;
  #least = levels.values['info'] as number;

  /** @throws ProxyError LOG_NOT_OPENED */
  constructor(options: LogOptions) {
    const log = this;
    const stream = {
      // pino sets lastLevel on a stream that asks for it so. A child has a level of its own, so only here a change reaches all of them.
      [Symbol.for('pino.metadata')]: true,
      lastLevel: 0,
      write(line: string): void {
        if (this.lastLevel >= log.#least) log.#destination?.write(line);
      },
    };
    this.logger = pino({ base: null, level: 'trace', timestamp: () => `,"time":"${new Date().toISOString()}"` }, stream);
    this.reopen(options);
  }

  /** Goes on in this file, which is opened anew even if it is the same: it may have been rotated. @throws ProxyError LOG_NOT_OPENED; nothing changes then. */
  reopen({ file, level = 'info' }: LogOptions): void {
    const next = file === undefined ? undefined : openDestination(file);
    this.#destination?.end();
    this.#destination = next;
    this.#least = levels.values[level] as number;
  }
}

/** What nobody caught ends this process, a rejection too; the log must say why. */
export function logUncaught(logger: Logger): void {
  process.once('uncaughtException', (error: unknown) => {
    const stack = error instanceof Error ? error.stack : String(error);
    logger.fatal({ stack }, 'gpu-proxy ends because of an error that it should have handled: report it, with these lines');
    process.exit(1);
  });
}

/** Every line about an allocation names it, so that one filter follows it through all of its life. */
export function allocationLogger(logger: Logger, { id, name }: Pick<AllocationSpecification, 'id' | 'name'>): Logger {
  return logger.child({ allocation: id, ...(name !== undefined && { name }) });
}

/** @param logger that of the allocation */
export function sessionLogger(logger: Logger, session: number): Logger {
  return logger.child({ session });
}

function openDestination(file: string): Destination {
  try {
    const opened = destination({ dest: file === '-' ? 1 : file, sync: true, append: true, mkdir: false, maxLength: MOST_WAITING_BYTES });
    // A log that cannot be written must not end what it tells about.
    return opened.on('error', () => {});
  } catch (error) {
    throw new ProxyError('LOG_NOT_OPENED', { path: file, reason: systemReason(error) });
  }
}
