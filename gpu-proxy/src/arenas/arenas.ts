import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import type { Addon } from '../host/addon.js';
import type { Installation } from '../host/installation.js';
import type { Launcher } from '../host/launcher.js';
import { MemoryFile } from './memory-file.js';
import { type NodeMemory, readNodeMemory } from './node-memory.js';

interface ArenasOptions {
  readonly installation: Installation;
  readonly addon: Addon;
  readonly launcher: Launcher;
  /** Limit on all arenas together, in bytes; undefined: half of the node's memory. */
  limit(): number | undefined;
  /** For tests. */
  readonly nodeMemory?: (() => NodeMemory) | undefined;
}

/** A session with an arena. */
export interface ArenaHolder {
  /** Size of an arena that it does not need now; 0: none. */
  readonly unusedArena: number;
  /** Lets the worker give it up, which may fail. */
  dropArena(): Promise<void>;
}

/** This part of the node's memory stays available. Unused arenas are given up for it. */
const RESERVE = 0.05;
const LOOK_EVERY_MS = 2000;

/**
 * The arenas of all sessions of a node: memory files that receive the GPU memory of suspended
 * sessions. They are charged to the node, and their sum has a limit. A file counts until the kernel
 * has freed it, whatever its worker says.
 */
export class Arenas {
  readonly #options: ArenasOptions;
  readonly #holders = new Set<ArenaHolder>();
  readonly #files = new Set<MemoryFile>();
  #used = 0;
  /** The part of it that is not populated yet. */
  #pending = 0;

  readonly #look: NodeJS.Timeout;

  constructor(options: ArenasOptions) {
    this.#options = options;
    this.#look = setInterval(() => void this.#relieveNode(), LOOK_EVERY_MS).unref();
  }

  /** Bytes of all arenas. */
  get used(): number {
    return this.#used;
  }

  /** Limit on `used`. 0: memory does not leave. */
  get limit(): number {
    return this.#options.limit() ?? Math.floor(this.#memory.total / 2);
  }

  /**
   * Makes an arena of each size, or none. If there is no room, arenas that are not needed are given
   * up first, the largest first.
   * @param id the allocation
   * @throws ProxyError HOST_MEMORY_NOT_LEFT, HOST_MEMORY_LOW, ARENA_NOT_MADE
   */
  async make(id: string, sizes: readonly number[]): Promise<MemoryFile[]> {
    const total = sizes.reduce((sum, size) => sum + size, 0);
    await this.#makeRoom(id, total);
    this.#used += total;
    this.#pending += total;
    const made = await Promise.allSettled(sizes.map((size) => this.#makeOne(size)));
    const files = made.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const failed = made.find((one) => one.status === 'rejected');
    if (!failed) return files;
    for (const file of files) file.close();
    const reason = systemReason(failed.reason);
    throw new ProxyError('ARENA_NOT_MADE', { id, size: formatMemorySize(total), reason });
  }

  add(holder: ArenaHolder): void {
    this.#holders.add(holder);
  }

  remove(holder: ArenaHolder): void {
    this.#holders.delete(holder);
  }

  /** Counts arenas that an earlier gpu-proxy made, or no longer if negative. */
  adopt(bytes: number): void {
    this.#used += bytes;
  }

  /** Stops waiting for the end of files. */
  leave(): void {
    clearInterval(this.#look);
    for (const file of this.#files) file.leave();
    this.#files.clear();
  }

  get #memory(): NodeMemory {
    return (this.#options.nodeMemory ?? readNodeMemory)();
  }

  async #makeOne(size: number): Promise<MemoryFile> {
    const { installation, addon, launcher } = this.#options;
    let file: MemoryFile | undefined;
    try {
      file = await MemoryFile.make(size, {
        ...{ addon, launcher, executable: installation.arena },
        freed: () => {
          this.#used -= size;
          if (file) this.#files.delete(file);
        },
      });
      this.#files.add(file);
      return file;
    } finally {
      this.#pending -= size;
    }
  }

  async #makeRoom(id: string, bytes: number): Promise<void> {
    const asked = new Set<ArenaHolder>();
    for (;;) {
      const refusal = this.#whyNoRoom(id, bytes);
      if (!refusal) return;
      const chosen = this.#chooseUnused(refusal.missing, asked);
      const unused = chosen.reduce((sum, { unusedArena }) => sum + unusedArena, 0);
      // Do not take the arenas of others for nothing.
      if (unused < refusal.missing) throw refusal.error;
      for (const holder of chosen) asked.add(holder);
      await Promise.allSettled(chosen.map((holder) => holder.dropArena()));
    }
  }

  /** Arenas that stay for the next suspension must not take the memory of pods. */
  async #relieveNode(): Promise<void> {
    if (this.#used === 0) return;
    const { total, available } = this.#memory;
    const over = Math.max(total * RESERVE - available, this.#used - this.limit);
    const chosen = this.#chooseUnused(over);
    await Promise.allSettled(chosen.map((holder) => holder.dropArena()));
  }

  #whyNoRoom(id: string, bytes: number): { error: ProxyError; missing: number } | undefined {
    const { limit } = this;
    const { total, available } = this.#memory;
    const needed = formatMemorySize(bytes);
    const over = this.#used + bytes - limit;
    if (over > 0) {
      const left = formatMemorySize(Math.max(0, limit - this.#used));
      const values = { id, needed, left, limit: formatMemorySize(limit) };
      return { missing: over, error: new ProxyError('HOST_MEMORY_NOT_LEFT', values) };
    }
    const reserve = Math.floor(total * RESERVE);
    const lacking = this.#pending + bytes + reserve - available;
    if (lacking <= 0) return undefined;
    const left = formatMemorySize(Math.max(0, available - this.#pending));
    const values = { id, needed, left, reserve: formatMemorySize(reserve) };
    return { missing: lacking, error: new ProxyError('HOST_MEMORY_LOW', values) };
  }

  /** The largest unused arenas that have `bytes` together, or all. */
  #chooseUnused(bytes: number, asked: ReadonlySet<ArenaHolder> = new Set()): ArenaHolder[] {
    const unused = [...this.#holders]
      .filter((holder) => holder.unusedArena > 0 && !asked.has(holder))
      .sort((one, other) => other.unusedArena - one.unusedArena);
    const chosen: ArenaHolder[] = [];
    for (let missing = bytes; missing > 0 && chosen.length < unused.length; ) {
      const next = unused[chosen.length] as ArenaHolder;
      missing -= next.unusedArena;
      chosen.push(next);
    }
    return chosen;
  }
}
