import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { findProcesses, userOf } from '@nvidia-virtual/service/process-table';
import type { ForCriu, ForMaking, ForWriting, Launcher } from '../host/launcher.js';

/** Paths at which distributions install CRIU. */
const PLACES = ['/usr/local/sbin/criu', '/usr/sbin/criu', '/usr/bin/criu'];
/** Beside a worker: the program, its libraries, and the loader that finds them. */
const DIRECTORY = 'criu';
const LOADER = 'ld-linux-x86-64.so.2';
/** Timeout of CRIU, which writes 1 GiB/s. GPU memory is not part of the process. */
const TIMEOUT_MS = 120_000;
const LOOK_MS = 20;
const LOG_BYTES = 64 * 2 ** 10;
/** The directory of its files is descriptor 3: a room does not show it. */
const FILES = '/proc/self/fd/3';
/**
 * The session is its only process, without files that others have. No plugins of the node: NVIDIA's
 * would look for GPUs. None is among its files.
 */
const COMMON = [
  ...['-v1', '--no-default-config', '--manage-cgroups=ignore'],
  ...['--images-dir', FILES, '--libdir', FILES],
];

/** Waits for CRIU of an earlier gpu-proxy that was killed. @param name of the session */
export async function awaitCriu(name: string): Promise<void> {
  const deadline = Date.now() + TIMEOUT_MS;
  while (isRunning(name) && Date.now() < deadline) await sleep(LOOK_MS);
}

function isRunning(name: string): boolean {
  return findProcesses('-o', logOf(name)).some(({ pid }) => userOf(pid) === 0);
}

/** Name of its log, among its files. */
function logOf(name: string): string {
  return `${name}.log`;
}

/** One run of CRIU for a session. */
interface Task<Purpose extends ForCriu> {
  /** Name of the session. */
  readonly name: string;
  /** Directory of the files. */
  readonly directory: string;
  readonly purpose: Omit<Purpose, 'knows'>;
}

/** CRIU: writes a process to files, and makes it again. It is a program of its own. */
export class Criu {
  readonly #command: readonly string[];
  readonly #launcher: Launcher;
  readonly #knows: string;

  private constructor(command: readonly string[], launcher: Launcher, knows: string) {
    this.#command = command;
    this.#launcher = launcher;
    this.#knows = knows;
  }

  /**
   * @param worker program of the worker: it may see only what lies beside it
   * @param knows directory on the node for what CRIU finds out about the kernel
   * @throws Error with a reason if it is not installed, or does not suit the kernel
   */
  static async find(launcher: Launcher, worker: string, knows: string): Promise<Criu> {
    const command = beside(launcher, worker) ?? installed(launcher);
    const criu = new Criu(command, launcher, knows);
    await criu.#run(['check'], undefined).catch((error: Error) => {
      throw new Error(`CRIU does not work here (\`criu check\`: ${error.message})`);
    });
    return criu;
  }

  /** Writes the process to the directory. It goes on. @throws Error with CRIU's reason */
  dump(pid: number, task: Task<ForWriting>): Promise<void> {
    return this.#run(['dump', '--tree', String(pid), '--leave-running'], task);
  }

  /** Makes the process again, with its former pid. @throws Error with CRIU's reason */
  restore(task: Task<ForMaking>): Promise<void> {
    return this.#run(['restore', '--restore-detached'], task);
  }

  async #run(words: readonly string[], task: Task<ForCriu> | undefined): Promise<void> {
    const [program = '', ...before] = this.#command;
    const more = task === undefined ? [] : [...COMMON, '-o', logOf(task.name)];
    const purpose = { ...task?.purpose, knows: this.#knows };
    const all = [...before, ...words, ...more];
    const [file, args] = this.#launcher.command(program, all, purpose);
    const files = openSync(task?.directory ?? '/', 'r');
    const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe', files] });
    const timer = setTimeout(() => killWithChildren(child.pid), TIMEOUT_MS);
    try {
      const [said, [status, signal]] = await Promise.all([
        text(child.stderr as Readable),
        once(child, 'close'),
      ]);
      if (status === 0) return;
      const log = task ? readLog(path.join(task.directory, logOf(task.name))) : '';
      const ended = signal === null ? `status ${status}` : `it was ended by ${signal}`;
      throw new Error(firstError(log) ?? firstError(said) ?? (printable(said.trim()) || ended));
    } finally {
      clearTimeout(timer);
      closeSync(files);
    }
  }
}

/** A process that it has half made would keep the pid. */
function killWithChildren(pid: number | undefined): void {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? [];
    for (const each of [Number(pid), ...children.map(Number)]) process.kill(each, 'SIGKILL');
  } catch {
    // it has ended
  }
}

function beside(launcher: Launcher, worker: string): string[] | undefined {
  const directory = path.join(path.dirname(worker), DIRECTORY);
  const file = path.join(directory, 'criu');
  if (!existsSync(launcher.seen(file))) return undefined;
  return [path.join(directory, LOADER), '--library-path', directory, file];
}

function installed(launcher: Launcher): string[] {
  if (launcher.allocations !== undefined)
    throw new Error('its programs began with a build that has no CRIU. Start them again');
  const file = PLACES.find((place) => existsSync(launcher.seen(place)));
  if (file !== undefined) return [file];
  throw new Error(
    'CRIU is not installed on the node: install the package `criu`, version 4.1 or newer',
  );
}

/** The end of it: the worker can make it long. */
function readLog(file: string): string {
  try {
    const fd = openSync(file, 'r');
    try {
      const end = Buffer.alloc(LOG_BYTES);
      const from = Math.max(0, fstatSync(fd).size - LOG_BYTES);
      return end.toString('utf8', 0, readSync(fd, end, 0, LOG_BYTES, from));
    } finally {
      closeSync(fd);
    }
  } catch {
    return '';
  }
}

/** Such as `(00.1) 13618: Error (criu/files.c:12): Can't open file`, which further ones follow. */
function firstError(log: string): string | undefined {
  const errors = log.split('\n').flatMap((line) => /Error \([^)]*\): (.*)/.exec(line)?.[1] ?? []);
  const first = errors.find((line) => !line.startsWith('rlimit:'));
  return first === undefined ? undefined : printable(first);
}

function printable(said: string): string {
  return said.replace(/[^ -~]/g, '?').slice(0, 300);
}
