import { type FSWatcher, statSync, watch } from 'node:fs';

/**
 * Reports possible changes in a directory that can be missing and recreated.
 */
export class DirectoryWatch {
  readonly #directory: string;
  readonly #changed: () => void;
  #watcher: FSWatcher | undefined;
  #watched: bigint | undefined;

  constructor(directory: string, changed: () => void) {
    this.#directory = directory;
    this.#changed = changed;
  }

  /**
   * Whether the directory exists. Must be called periodically: a watch follows the inode, not the
   * path.
   */
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
      // The directory was removed, or no inotify watch is left. The caller polls anyway.
    }
    return true;
  }

  end(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#watched = undefined;
  }
}
