import { type FSWatcher, statSync, watch } from 'node:fs';

/** Reports that something may have changed in a directory, which may be missing now and made anew later. */
export class DirectoryWatch {
  readonly #directory: string;
  readonly #changed: () => void;
  #watcher: FSWatcher | undefined;
  #watched: bigint | undefined;

  constructor(directory: string, changed: () => void) {
    this.#directory = directory;
    this.#changed = changed;
  }

  /** Whether the directory is there. To be called now and then: a watch follows the directory that it was begun on, not the name. */
  renew(): boolean {
    const inode = statSync(this.#directory, { bigint: true, throwIfNoEntry: false })?.ino;
    if (inode !== undefined && inode === this.#watched) return true;
    this.end();
    if (inode === undefined) return false;
    try {
      this.#watcher = watch(this.#directory, this.#changed);
      this.#watcher.on('error', () => this.end());
      this.#watched = inode;
    } catch {
      // Removed meanwhile, or no watches are left on this machine: the caller looks from time to time in any case.
    }
    return true;
  }

  end(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#watched = undefined;
  }
}
