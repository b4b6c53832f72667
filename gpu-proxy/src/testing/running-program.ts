import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { cudaProgram } from './cuda-program.js';

/** A running CUDA program whose output lines a test awaits. */
export class RunningProgram {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;

  /** @param before words that start its command line */
  constructor(
    body: string,
    env: NodeJS.ProcessEnv,
    args: readonly string[] = [],
    before: readonly string[] = [],
  ) {
    const [program, ...words] = [...before, ...cudaProgram(body), ...args];
    this.#process = spawn(program as string, words, { env });
    this.#lines = createInterface(this.#process.stdout)[Symbol.asyncIterator]();
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** The next line of its output. */
  async line(): Promise<string> {
    return String((await this.#lines.next()).value);
  }

  /** Writes a line to its input. */
  tell(line: string): void {
    this.#process.stdin.write(`${line}\n`);
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }
}
