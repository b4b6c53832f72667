import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { RetryTimer } from './backoff.js';
import { readIfThere } from './files.js';

/** The backoff is reset after a process was healthy for this time. */
const HEALTHY_MS = 10_000;

/** Restarts a helper process with backoff. The process outlives this one. */
export class Supervisor {
  readonly #timer: RetryTimer;

  constructor(start: () => void) {
    this.#timer = new RetryTimer(start, { first: 20, longest: 5000 });
  }

  /** @param healthySince time of Date.now(); undefined: the process never became healthy */
  restart(healthySince: number | undefined): void {
    if (healthySince !== undefined && Date.now() - healthySince > HEALTHY_MS) this.#timer.reset();
    this.#timer.schedule();
  }

  stop(): void {
    this.#timer.cancel();
  }

  /**
   * Starts the process. Its output goes to the file `log`. When it exits, `ended` receives the
   * last line of the log as the reason. @throws a system error
   */
  spawn(
    [file, args]: readonly [string, readonly string[]],
    log: string,
    ended: (reason: string) => void,
    options: Pick<SpawnOptions, 'env'> = {},
  ): ChildProcess {
    const fd = openSync(log, 'w', 0o600);
    try {
      const child = spawn(file, args, { ...options, stdio: ['ignore', fd, fd], detached: true });
      child.once('error', (error) => ended(error.message));
      child.once('exit', (status, signal) =>
        ended(lastLine(log) ?? `it ended with ${signal ?? `status ${status}`}`),
      );
      return child;
    } finally {
      closeSync(fd);
    }
  }
}

function lastLine(file: string): string | undefined {
  return readIfThere(file)?.trim().split('\n').at(-1) || undefined;
}
