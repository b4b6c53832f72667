import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, type FSWatcher, fstatSync, watch } from 'node:fs';
import type { Readable } from 'node:stream';
import type { Addon } from '../host/addon.js';
import type { Launcher } from '../host/launcher.js';
import { killWithoutWaiting } from '../host/run-command.js';

interface MemoryFileOptions {
  readonly addon: Addon;
  readonly launcher: Launcher;
  /** native/arena */
  readonly executable: string;
  /** Called when the kernel has freed the file. */
  freed(): void;
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
export function watchFreed(file: string, freed: () => void): () => void {
  const watcher: FSWatcher = watch(file, { persistent: false }, (event) => {
    if (event !== 'rename') return;
    watcher.close();
    freed();
  }).on('error', () => {});
  return () => watcher.close();
}

/** A populated memory file, which goes to a worker. */
export class MemoryFile {
  readonly fd: number;
  readonly size: number;
  readonly inode: number;
  /** Resolves when the kernel has freed it. */
  readonly freed: Promise<void>;
  readonly #unwatch: () => void;
  #open = true;

  private constructor(size: number, { addon, freed }: MemoryFileOptions) {
    this.size = size;
    try {
      this.fd = addon.memoryFile(size);
    } catch (error) {
      freed();
      throw error;
    }
    try {
      this.inode = fstatSync(this.fd).ino;
      let noteFreed = () => {};
      this.freed = new Promise((resolve) => {
        noteFreed = resolve;
      });
      this.#unwatch = watchFreed(`/proc/self/fd/${this.fd}`, () => {
        freed();
        noteFreed();
      });
    } catch (error) {
      closeSync(this.fd);
      freed();
      throw error;
    }
  }

  /**
   * Creates a file with all its pages. They are charged to the node.
   * @throws Error with the reason; the file is freed
   */
  static async make(size: number, options: MemoryFileOptions): Promise<MemoryFile> {
    const file = new MemoryFile(size, options);
    try {
      await populate(file, options);
      return file;
    } catch (error) {
      file.close();
      throw error;
    }
  }

  /** Closes the descriptor of this process. Idempotent. */
  close(): void {
    if (this.#open) closeSync(this.fd);
    this.#open = false;
  }

  /** Stops waiting for its end. */
  leave(): void {
    this.close();
    this.#unwatch();
  }
}

function populate(
  { fd, size }: MemoryFile,
  { launcher, executable }: MemoryFileOptions,
): Promise<void> {
  const [file, args] = launcher.command(executable, [], 'node memory');
  const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe', fd] });
  return ended(child, POPULATE_MS + (size / GiB) * POPULATE_MS_PER_GIB);
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
