import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, type FSWatcher, watch } from 'node:fs';
import type { Readable } from 'node:stream';
import type { Addon } from '../host/addon.js';
import type { Launcher } from '../host/launcher.js';
import { killWithoutWaiting } from '../host/run-command.js';

interface PopulateOptions {
  readonly launcher: Launcher;
  /** native/arena */
  readonly executable: string;
}

const GiB = 2 ** 30;
/** Populating takes 0.5 s per GiB and thread. */
const POPULATE_MS = 30_000;
const POPULATE_MS_PER_GIB = 4000;
/** Limit on the reason that a process gives. */
const MOST_CHARACTERS = 1000;

/**
 * Calls `freed` once no process has a descriptor or a mapping of the file. inotify reports that,
 * whoever has it last, so it is true even if a worker says otherwise, and costs no descriptor.
 * @param file a path that leads to it
 * @returns a function that ends the watch. @throws a system error
 */
function watchFreed(file: string, freed: () => void): () => void {
  const watcher: FSWatcher = watch(file, { persistent: false }, (event) => {
    if (event !== 'rename') return;
    watcher.close();
    freed();
  }).on('error', () => {});
  return () => watcher.close();
}

/**
 * Gives a file in memory all its pages, which are charged to the node. `done` rejects with the
 * reason.
 */
export function populate(
  fd: number,
  size: number,
  { launcher, executable }: PopulateOptions,
): { readonly child: ChildProcess; readonly done: Promise<void> } {
  const [file, args] = launcher.command(executable, [], 'node memory');
  const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe', fd] });
  return { child, done: ended(child, POPULATE_MS + (size / GiB) * POPULATE_MS_PER_GIB) };
}

/** A memory file that goes to a worker. */
export class MemoryFile {
  readonly fd: number;
  readonly size: number;
  /** The kernel's name of it, see find(). */
  readonly handle: string;
  /** Resolves when the kernel has freed it. */
  readonly freed: Promise<void>;
  #unwatch = () => {};
  #open = true;
  /** Populates it. */
  #child: ChildProcess | undefined;

  private constructor(fd: number, size: number, handle: (fd: number) => string) {
    this.fd = fd;
    this.size = size;
    try {
      this.handle = handle(fd);
      this.freed = new Promise((resolve) => {
        this.#unwatch = watchFreed(`/proc/self/fd/${fd}`, resolve);
      });
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  /** Creates a file without pages. @throws a system error */
  static create(size: number, addon: Addon): MemoryFile {
    return new MemoryFile(addon.memoryFile(size), size, (fd) => addon.memoryFileHandle(fd));
  }

  /**
   * Finds a file of an earlier gpu-proxy, only to know when it is freed.
   * @returns undefined if it is freed
   * @throws a system error without the right to find it
   */
  static find(handle: string, size: number, addon: Addon): MemoryFile | undefined {
    const fd = addon.findMemoryFile(handle);
    return fd === undefined ? undefined : new MemoryFile(fd, size, () => handle);
  }

  /** Gives it all its pages, which are charged to the node. @throws Error with the reason */
  populate(options: PopulateOptions): Promise<void> {
    const { child, done } = populate(this.fd, this.size, options);
    this.#child = child;
    return done;
  }

  /** Closes the descriptor of this process. Idempotent. */
  close(): void {
    if (this.#open) closeSync(this.fd);
    this.#open = false;
  }

  /** Stops waiting for its end, and populating it. */
  leave(): void {
    this.#child?.kill('SIGKILL');
    this.close();
    this.#unwatch();
  }
}

/** Resolves when the process has ended well. */
function ended(child: ChildProcess, timeoutMs: number): Promise<void> {
  let said = '';
  (child.stderr as Readable).on('data', (data) => {
    said = `${said}${data}`.slice(-MOST_CHARACTERS);
  });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      killWithoutWaiting(child);
      reject(new Error(`it takes longer than ${timeoutMs / 1000} s`));
    }, timeoutMs);
    child.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.once('close', (status, signal) => {
      clearTimeout(timer);
      const reason = said.trim().split('\n').at(-1) || `nvidia-virtual-arena ended with ${status}`;
      if (status === 0) resolve();
      else reject(new Error(signal ? `nvidia-virtual-arena was killed by ${signal}` : reason));
    });
  });
}
