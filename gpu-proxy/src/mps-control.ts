import { type ChildProcess, execFile, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import { abandon } from './inquiry.js';
import type { Command, Launcher } from './launcher.js';
import { findProcessesWith, hasRoot, isAlive, isOfUser, type ProcessIdentity } from './process-table.js';

const NAME = 'nvidia-cuda-mps-control';
const ANSWER_MS = 5000;
const GOING_MS = 2000;
const LOOK_EVERY_MS = 5;

export interface MpsProgram {
  /** nvidia-cuda-mps-control. */
  readonly executable: string;
  /** libcuda.so.1; the server loads it, and must not find ours. */
  readonly driver: string;
  readonly launcher: Launcher;
}

/** NVIDIA's program that is both MPS' control daemon and what one asks it with; for one GPU and one directory of pipes. */
export class MpsControl {
  readonly pipes: string;
  readonly logs: string;
  readonly #executable: string;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #launcher: Launcher;
  readonly #answerMs: number;
  #asking: ChildProcess | undefined;
  /** The one that asks was killed, and is not gone: another would only hang too. */
  #hangs = false;

  /** @param directory of this daemon alone. @param gpu its UUID. */
  constructor({ executable, driver, launcher }: MpsProgram, directory: string, gpu: string, answerMs = ANSWER_MS) {
    this.#executable = executable;
    this.#launcher = launcher;
    this.#answerMs = answerMs;
    this.pipes = path.join(directory, 'pipes');
    this.logs = path.join(directory, 'logs');
    this.#environment = {
      PATH: [path.dirname(executable), process.env['PATH']].join(':'),
      LD_LIBRARY_PATH: path.dirname(driver),
      CUDA_VISIBLE_DEVICES: gpu,
      CUDA_MPS_PIPE_DIRECTORY: this.pipes,
      CUDA_MPS_LOG_DIRECTORY: this.logs,
    };
  }

  /** How the daemon is started: it stays in the foreground, so that whoever starts it sees it end. */
  get daemon(): { readonly command: Command; readonly env: NodeJS.ProcessEnv } {
    return { command: this.#launcher.command(this.#executable, ['-f'], 'node service'), env: this.#environment };
  }

  /** The daemon of these pipes, whichever gpu-proxy started it. */
  find(): ProcessIdentity | undefined {
    const uid = process.getuid?.() ?? 0;
    return this.#processes().find(({ words, identity }) => words.at(-1) === '-f' && isOfUser(identity, uid))?.identity;
  }

  /** Whether the daemon answers. Patience ends whether or not the process does that asks. */
  answers(): Promise<boolean> {
    if (this.#hangs) return Promise.resolve(false);
    return new Promise<boolean>((resolve) => {
      const asking = execFile(...this.#launcher.command(this.#executable, []), { env: this.#environment }, (error) => {
        clearTimeout(patience);
        this.#hangs = false;
        resolve(error === null);
      });
      const patience = setTimeout(() => {
        this.#hangs = true;
        abandon(asking);
        resolve(false);
      }, this.#answerMs);
      asking.stdin?.on('error', () => {}).end('get_server_list\n');
      this.#asking = asking;
    }).catch(() => false);
  }

  /** Ends the daemon and its server, by request if it hears one. Returns when that is done: this is for a node that ends itself. */
  quit(): void {
    // Nobody hears the answer any more, and the daemon may be waiting for the rest of the question.
    this.#asking?.kill('SIGKILL');
    const processes = this.#processes().map(({ identity }) => identity);
    if (processes.length === 0) return;
    if (!this.#hangs && this.#askToQuit() && areGone(processes)) return;
    for (const { pid } of processes.filter(isAlive)) killIfThere(pid);
    areGone(processes);
  }

  #askToQuit(): boolean {
    const options = { env: this.#environment, timeout: this.#answerMs, killSignal: 'SIGKILL', input: 'quit\n' } as const;
    return spawnSync(...this.#launcher.command(this.#executable, []), options).status === 0;
  }

  /** A process of a pod may have the same words and variable, but neither the host's root directory nor, where it is shared, this user. */
  #processes() {
    const root = this.#launcher.seen('/');
    return findProcessesWith(`CUDA_MPS_PIPE_DIRECTORY=${this.pipes}`).filter(
      ({ words, identity }) => words.some((word) => /nvidia-cuda-mps-/.test(word)) && hasRoot(identity, root),
    );
  }
}

/** Beside the driver, where a driver that is no package of the system has it, or in PATH. */
export function findMpsControl(
  driver: string,
  launcher: Pick<Launcher, 'seen'>,
  searchPath = process.env['PATH'] ?? '',
): string | undefined {
  const libraries = path.dirname(driver);
  const besideDriver = [path.join(libraries, '..', 'bin'), path.join(libraries, '..', '..', 'bin')];
  return [...besideDriver, ...searchPath.split(':').filter((directory) => directory !== '')]
    .map((directory) => path.join(directory, NAME))
    .find((file) => isExecutable(launcher.seen(file)));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Whether none is left, after some patience. */
function areGone(processes: readonly ProcessIdentity[]): boolean {
  for (const end = Date.now() + GOING_MS; Date.now() < end; sleep(LOOK_EVERY_MS)) if (!processes.some(isAlive)) return true;
  return false;
}

/** Holds up everything. */
function sleep(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}
