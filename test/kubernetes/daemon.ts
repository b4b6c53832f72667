import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { PATIENCE_MS, until } from '../processes.js';

/** Time until a process that ignores SIGTERM is killed. */
const GRACE_MS = 15_000;

export interface DaemonOptions {
  readonly program: string;
  readonly args: readonly string[];
  /** File to which its output is appended. */
  readonly logFile: string;
  readonly env?: NodeJS.ProcessEnv;
  /** While a caller waits for it, it is restarted when it ends, as by systemd. */
  readonly isRevived?: boolean;
}

/**
 * A component of Kubernetes as a child process. It is killed and restarted by its pid, and never
 * outlives the test.
 */
export class Daemon {
  #process: ChildProcess | undefined;

  constructor(
    readonly name: string,
    readonly options: DaemonOptions,
  ) {}

  /** Starts it, also again after its end. */
  start(): this {
    if (this.alive) throw new Error(`${this.name} runs already`);
    const { program, args, logFile, env = process.env } = this.options;
    const log = openSync(logFile, 'a');
    // A machine with two processors has more spare memory than time: Go collects garbage a quarter
    // as often as by default.
    const options = { stdio: ['ignore', log, log] as StdioOptions, env: { GOGC: '400', ...env } };
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', program, ...args], options);
    child.once('error', () => undefined); // callers check `alive`
    closeSync(log);
    this.#process = child;
    return this;
  }

  get pid(): number {
    return this.#process?.pid ?? -1;
  }

  get alive(): boolean {
    return (
      this.#process?.pid !== undefined &&
      this.#process.exitCode === null &&
      this.#process.signalCode === null
    );
  }

  /** Kills it without warning. */
  async kill(): Promise<void> {
    this.#process?.kill('SIGKILL');
    await until(() => !this.alive, GRACE_MS);
  }

  /** Terminates it as an administrator would. Kills it if it does not end. */
  async stop(): Promise<void> {
    this.#process?.kill('SIGTERM');
    if (!(await until(() => !this.alive, GRACE_MS))) await this.kill();
  }

  log(): string {
    return existsSync(this.options.logFile) ? readFileSync(this.options.logFile, 'utf8') : '';
  }

  /**
   * Waits until it serves. @throws Error with the end of its log if it ended instead, or after the
   * timeout
   */
  async serving(serves: () => Promise<boolean>, milliseconds = PATIENCE_MS): Promise<void> {
    const end = performance.now() + milliseconds;
    while (!(await serves())) {
      const isLate = performance.now() > end;
      if (isLate || (!this.alive && !this.options.isRevived))
        throw new Error(`${this.name} did not come up:\n${this.lastLines()}`);
      if (!this.alive) this.start();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  lastLines(count = 20): string {
    return this.log().trimEnd().split('\n').slice(-count).join('\n');
  }
}
