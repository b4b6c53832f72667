import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

type LogLine = Readonly<Record<string, unknown>>;

/** A program of this project in a process, with its log. */
export class ProcessUnderTest {
  readonly #child: ChildProcess;
  /** Resolves when it has ended and all its output was read. */
  readonly #closed: Promise<unknown>;
  output = '';

  constructor([program = '', ...args]: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.#child = spawn(program, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (data: Buffer) => {
        this.output += data;
      });
    this.#closed = once(this.#child, 'close');
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Lines of its log. Other output is skipped. */
  get log(): LogLine[] {
    return this.output
      .split('\n')
      .flatMap((line) =>
        line.startsWith('{') && line.endsWith('}') ? [JSON.parse(line) as LogLine] : [],
      );
  }

  said(message: string): boolean {
    return this.log.some(({ msg }) => String(msg).includes(message));
  }

  /** Waits until it ends, with all its output. @returns its exit status */
  async exited(): Promise<number | null> {
    await this.#closed;
    return this.#child.exitCode;
  }

  /** @returns its exit status */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (this.running) this.#child.kill(signal);
    return this.exited();
  }
}
