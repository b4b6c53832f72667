import { readIfThere, writeFileAtomically } from '@nvidia-virtual/service/files';
import type { Addon } from '../host/addon.js';
import { MemoryFile } from './memory-file.js';

/** Host memory that an allocation has. */
interface Held {
  readonly allocation: string;
  readonly size: number;
  /** The kernel's name of the file. */
  readonly handle: string;
}

/**
 * The memory files that the kernel has not freed, whichever process has them and whatever it says.
 * The record lets the next gpu-proxy find them again. It is written before a worker gets a file.
 */
export class HeldFiles {
  readonly #record: string;
  readonly #held = new Map<Held, MemoryFile | undefined>();
  #left = false;

  /** @param record path of a file that may not exist yet */
  constructor(record: string, addon: Addon) {
    this.#record = record;
    for (const held of read(record)) this.#find(held, addon);
  }

  /** Bytes of all allocations that `counts` names. */
  bytes(counts: (allocation: string) => boolean): number {
    const counted = [...this.#held.keys()].filter(({ allocation }) => counts(allocation));
    return counted.reduce((sum, { size }) => sum + size, 0);
  }

  /** Counts and records a file. @throws a system error; it counts then, too */
  add(allocation: string, file: MemoryFile): void {
    if (this.#left) throw new Error('gpu-proxy ends');
    const { size, handle } = file;
    this.#count({ allocation, size, handle }, file);
    this.#save();
  }

  /** Resolves when the file is freed. */
  async whenFreed(handle: string): Promise<void> {
    for (const [held, file] of this.#held) if (held.handle === handle) await file?.freed;
  }

  /** Forgets files of an allocation that this process had no right to find. */
  forgetUnfound(allocation: string): void {
    for (const [held, file] of this.#held)
      if (!file && held.allocation === allocation) this.#remove(held);
  }

  /** Stops waiting for the end of files. */
  leave(): void {
    this.#left = true;
    for (const file of this.#held.values()) file?.leave();
    this.#held.clear();
  }

  /** Without the right to find it, it counts until no session of the allocation is left. */
  #find(held: Held, addon: Addon): void {
    try {
      const file = MemoryFile.find(held.handle, held.size, addon);
      if (!file) return;
      this.#count(held, file);
      file.close();
    } catch {
      this.#held.set(held, undefined);
    }
  }

  #count(held: Held, file: MemoryFile): void {
    this.#held.set(held, file);
    void file.freed.then(() => this.#remove(held));
  }

  #remove(held: Held): void {
    if (!this.#held.delete(held)) return;
    try {
      this.#save();
    } catch {
      // The disk is full. The next gpu-proxy finds that the kernel has freed the file.
    }
  }

  #save(): void {
    writeFileAtomically(this.#record, JSON.stringify([...this.#held.keys()]));
  }
}

/** A loss of power can leave a broken record, and no memory file. */
function read(record: string): Held[] {
  try {
    return JSON.parse(readIfThere(record) ?? '[]') as Held[];
  } catch {
    return [];
  }
}
