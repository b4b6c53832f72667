import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { PATIENCE_MS, until } from '../processes.js';

/** What does not end when it is asked to is killed after so long. */
const GRACE_MS = 15_000;

export interface DaemonOptions {
  readonly program: string;
  readonly args: readonly string[];
  /** Everything that it prints is appended to this file. */
  readonly logFile: string;
  readonly env?: NodeJS.ProcessEnv;
  /** While it is waited for it is started again when it ends, as systemd does. */
  readonly isRevived?: boolean;
}

/**
 * A part of Kubernetes as a process of the test's: started, killed and started again by its pid,
 * and never outliving the test.
 */
export class Daemon {
  #process: ChildProcess | undefined;

  constructor(
    readonly name: string,
    readonly options: DaemonOptions,
  ) {}

  /** Also again, once it has ended. */
  start(): this {
    if (this.alive) throw new Error(`${this.name} runs already`);
    const { program, args, logFile, env = process.env } = this.options;
    const log = openSync(logFile, 'a');
    // A machine with two processors has more memory to spare than time: Go collects its garbage a
    // quarter as often as it would.
    const options = { stdio: ['ignore', log, log] as StdioOptions, env: { GOGC: '400', ...env } };
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', program, ...args], options);
    child.once('error', () => undefined); // it is not alive then, which is what everybody looks at
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

  /** As if nobody had expected it. */
  async kill(): Promise<void> {
    this.#process?.kill('SIGKILL');
    await until(() => !this.alive, GRACE_MS);
  }

  /** As its administrator would; what does not end by itself is killed. */
  async stop(): Promise<void> {
    this.#process?.kill('SIGTERM');
    if (!(await until(() => !this.alive, GRACE_MS))) await this.kill();
  }

  log(): string {
    return existsSync(this.options.logFile) ? readFileSync(this.options.logFile, 'utf8') : '';
  }

  /**
   * Waits until it serves. @throws Error with the end of its log when it ended instead, or when the
   * time is up
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
