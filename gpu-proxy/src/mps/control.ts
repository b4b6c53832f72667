import { type ChildProcess, execFile, spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import {
  findProcessesWith,
  hasRoot,
  isAlive,
  isOfUser,
  type ProcessIdentity,
} from '@nvidia-virtual/service/process-table';
import type { Command, Launcher } from '../host/launcher.js';
import { killWithoutWaiting } from '../host/run-command.js';

const NAME = 'nvidia-cuda-mps-control';
const ANSWER_MS = 5000;
const GOING_MS = 2000;
const LOOK_EVERY_MS = 5;

export interface MpsProgram {
  /** nvidia-cuda-mps-control. */
  readonly executable: string;
  /** The driver's libcuda.so.1. The server loads it, and must not find the interposer. */
  readonly driver: string;
  readonly launcher: Launcher;
}

/**
 * nvidia-cuda-mps-control, which is both the MPS control daemon and its command line client; for
 * one GPU and one directory of pipes.
 */
export class MpsControl {
  readonly pipes: string;
  readonly logs: string;
  readonly #executable: string;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #launcher: Launcher;
  readonly #answerMs: number;
  #asking: ChildProcess | undefined;
  /** A killed client process still exists. A new one would hang, too. */
  #hangs = false;

  /** @param directory used by this daemon only. @param gpu UUID. */
  constructor(
    { executable, driver, launcher }: MpsProgram,
    directory: string,
    gpu: string,
    answerMs = ANSWER_MS,
  ) {
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

  /**
   * Command and environment of the daemon. It stays in the foreground, so its parent notices its
   * exit.
   */
  get daemon(): { readonly command: Command; readonly env: NodeJS.ProcessEnv } {
    return {
      command: this.#launcher.command(this.#executable, ['-f'], 'node service'),
      env: this.#environment,
    };
  }

  /** The daemon of these pipes, whichever gpu-proxy started it. */
  find(): ProcessIdentity | undefined {
    const uid = process.getuid?.() ?? 0;
    return this.#processes().find(
      ({ words, identity }) => words.at(-1) === '-f' && isOfUser(identity, uid),
    )?.identity;
  }

  /** Whether the daemon answers. The timeout also applies if the client process hangs. */
  answers(): Promise<boolean> {
    if (this.#hangs) return Promise.resolve(false);
    return new Promise<boolean>((resolve) => {
      const asking = execFile(
        ...this.#launcher.command(this.#executable, [], 'query'),
        { env: this.#environment },
        (error) => {
          clearTimeout(patience);
          this.#hangs = false;
          resolve(error === null);
        },
      );
      const patience = setTimeout(() => {
        this.#hangs = true;
        killWithoutWaiting(asking);
        resolve(false);
      }, this.#answerMs);
      asking.stdin?.on('error', () => {}).end('get_server_list\n');
      this.#asking = asking;
    }).catch(() => false);
  }

  /**
   * Terminates the daemon and its server: by `quit` if the daemon answers, otherwise by SIGKILL.
   * Blocks until they are gone or a timeout passes.
   */
  quit(): void {
    // Its answer is no longer needed, and the daemon may be waiting for the rest of its input.
    this.#asking?.kill('SIGKILL');
    const processes = this.#processes().map(({ identity }) => identity);
    if (processes.length === 0) return;
    if (!this.#hangs && this.#askToQuit() && areGone(processes)) return;
    for (const { pid } of processes.filter(isAlive)) killIfThere(pid);
    areGone(processes);
  }

  #askToQuit(): boolean {
    const options = {
      env: this.#environment,
      timeout: this.#answerMs,
      killSignal: 'SIGKILL',
      input: 'quit\n',
    } as const;
    return (
      spawnSync(...this.#launcher.command(this.#executable, [], 'query'), options).status === 0
    );
  }

  /**
   * The daemon and server of these pipes. A process in a pod can have the same arguments and
   * environment, but not the host's root directory. If a pod shares that, find() checks the user.
   */
  #processes() {
    const root = this.#launcher.seen('/');
    return findProcessesWith(`CUDA_MPS_PIPE_DIRECTORY=${this.pipes}`).filter(
      ({ words, identity }) =>
        words.some((word) => /nvidia-cuda-mps-/.test(word)) && hasRoot(identity, root),
    );
  }
}

/** Searches beside the driver (drivers that are not system packages), then in PATH. */
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

/** Whether all processes exit within GOING_MS. */
function areGone(processes: readonly ProcessIdentity[]): boolean {
  for (const end = Date.now() + GOING_MS; Date.now() < end; sleep(LOOK_EVERY_MS))
    if (!processes.some(isAlive)) return true;
  return false;
}

/** Blocks the event loop. */
function sleep(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has already exited.
  }
}
