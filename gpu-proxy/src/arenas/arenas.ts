import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import type { Addon } from '../host/addon.js';
import type { Installation } from '../host/installation.js';
import type { Launcher } from '../host/launcher.js';
import { HeldFiles } from './held-files.js';
import { MemoryFile } from './memory-file.js';
import { type NodeMemory, readNodeMemory } from './node-memory.js';

/** Host memory that allocations on oversubscribed GPUs have been promised, in use or not. */
export interface PromisedMemory {
  readonly bytes: number;
  /** Whether an allocation is one of them. */
  includes(allocation: string): boolean;
}

interface ArenasOptions {
  readonly installation: Installation;
  readonly addon: Addon;
  readonly launcher: Launcher;
  /** Path of the record of all arenas. */
  readonly record: string;
  /** Limit on all arenas together, in bytes; undefined: half of the node's memory. */
  limit(): number | undefined;
  promised(): PromisedMemory;
  /** For tests. */
  readonly nodeMemory?: (() => NodeMemory) | undefined;
}

/** A session with an arena. */
export interface ArenaHolder {
  /** Id of its allocation. */
  readonly allocation: string;
  /** Size of an arena that it does not need now; 0: none. */
  readonly unusedArena: number;
  /** Asks the worker to release its arena, which may fail. */
  dropArena(): Promise<void>;
}

/** Arenas for sessions of an allocation. */
interface ArenasWanted {
  /** The allocation. */
  readonly id: string;
  /** One for each session, in bytes. */
  readonly sizes: readonly number[];
  /** Bytes of arenas that are used again. */
  readonly again: number;
  /** Limit on all arenas of the allocation, in bytes. */
  readonly most: number;
}

interface Refusal {
  readonly error: Error;
  /** Bytes. */
  readonly missing: number;
  /** Whether an unused arena of the allocation would help. */
  helps(allocation: string): boolean;
}

/** This part of the node's memory stays available. Unused arenas are given up for it. */
const RESERVE = 0.05;
const LOOK_EVERY_MS = 2000;

/**
 * The arenas of all sessions of a node: memory files that receive the GPU memory of suspended
 * sessions. They are charged to the node, and their sum has a limit, as has the sum of each
 * allocation. A file counts until the kernel has freed it, whatever its worker says.
 */
export class Arenas {
  readonly #options: ArenasOptions;
  readonly #holders = new Set<ArenaHolder>();
  readonly #held: HeldFiles;
  /** Bytes that others may take at any time: of arenas that are not populated yet, or set aside. */
  #pending = 0;
  readonly #look: NodeJS.Timeout;

  constructor(options: ArenasOptions) {
    this.#options = options;
    this.#held = new HeldFiles(options.record, options.addon);
    this.#look = setInterval(() => void this.#relieveNode(), LOOK_EVERY_MS).unref();
  }

  /** Bytes of all arenas. */
  get used(): number {
    return this.#held.bytes(() => true);
  }

  /** Bytes of the arenas of an allocation, also of its ended sessions. */
  usedBy(id: string): number {
    return this.#held.bytes((allocation) => allocation === id);
  }

  /** Limit on `used`. 0: memory does not leave. */
  get limit(): number {
    return this.limitOf(this.#options.limit());
  }

  /** The limit that an option makes. Undefined: half of the node's memory. */
  limitOf(bytes: number | undefined): number {
    return bytes ?? Math.floor(this.#memory.total / 2);
  }

  /**
   * Makes an arena of each size, or none. If there is no room, arenas that are not needed are given
   * up first, the largest first.
   * @throws ProxyError ARENAS_KEPT, HOST_MEMORY_PROMISED, HOST_MEMORY_NOT_LEFT, HOST_MEMORY_LOW,
   * ARENA_NOT_MADE
   */
  async make(wanted: ArenasWanted): Promise<MemoryFile[]> {
    const { id, sizes } = wanted;
    const total = sum(sizes);
    const asked = new Set<ArenaHolder>();
    for (let no = this.#whyNot(wanted); no; no = this.#whyNot(wanted))
      await this.#makeRoom(no, asked);
    // Counted in the same turn as it was checked.
    const made = await Promise.allSettled(sizes.map((size) => this.#makeOne(id, size)));
    const files = made.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const failed = made.find((one) => one.status === 'rejected');
    if (!failed) return files;
    for (const file of files) file.close();
    const reason = systemReason(failed.reason);
    throw new ProxyError('ARENA_NOT_MADE', { id, size: formatMemorySize(total), reason });
  }

  /**
   * Sets memory of the node aside for other files, beside the limit on arenas. Unused arenas are
   * given up for it.
   * @returns a function that gives it back. @throws Error with the figures
   */
  async setAside(bytes: number): Promise<() => void> {
    const asked = new Set<ArenaHolder>();
    for (let no = this.#whyLow(bytes); no; no = this.#whyLow(bytes)) {
      const { missing, needed, left, reserve } = no;
      const error = new Error(
        `it needs ${needed} of host memory, and ${left} are available on the node, of which ` +
          `${reserve} must stay free`,
      );
      await this.#makeRoom({ error, missing, helps: () => true }, asked);
    }
    this.#pending += bytes;
    return () => {
      this.#pending -= bytes;
    };
  }

  /** Bytes that allocations without a promise have, also in unused arenas. */
  get lent(): number {
    return this.#without(this.#options.promised());
  }

  /** Allocations without a promise give up what they do not need now. A worker may keep its own. */
  async giveUpUnused(): Promise<void> {
    const promised = this.#options.promised();
    const unused = this.#chooseUnused(
      Number.POSITIVE_INFINITY,
      ({ allocation }) => !promised.includes(allocation),
    );
    await drop(unused);
  }

  add(holder: ArenaHolder): void {
    this.#holders.add(holder);
  }

  remove(holder: ArenaHolder): void {
    this.#holders.delete(holder);
  }

  /** The session of the holder has ended. */
  end(holder: ArenaHolder): void {
    this.remove(holder);
    const { allocation } = holder;
    if (![...this.#holders].some((other) => other.allocation === allocation))
      this.#held.forgetUnfound(allocation);
  }

  /** Resolves when the kernel has freed a file. @param handle its name */
  whenFreed(handle: string): Promise<void> {
    return this.#held.whenFreed(handle);
  }

  /** Stops waiting for the end of files. */
  leave(): void {
    clearInterval(this.#look);
    this.#held.leave();
  }

  get #memory(): NodeMemory {
    return (this.#options.nodeMemory ?? readNodeMemory)();
  }

  /** Counts its bytes at once, and until it is freed. */
  async #makeOne(id: string, size: number): Promise<MemoryFile> {
    const { installation, addon, launcher } = this.#options;
    const file = MemoryFile.create(size, addon);
    this.#pending += size;
    try {
      this.#held.add(id, file);
      await file.populate({ launcher, executable: installation.arena });
      return file;
    } catch (error) {
      file.close();
      throw error;
    } finally {
      this.#pending -= size;
    }
  }

  /** @throws the error of the refusal, without taking the arenas of others for nothing */
  async #makeRoom({ error, missing, helps }: Refusal, asked: Set<ArenaHolder>): Promise<void> {
    const chosen = this.#chooseUnused(
      missing,
      (holder) => helps(holder.allocation) && !asked.has(holder),
    );
    if (sum(chosen.map(({ unusedArena }) => unusedArena)) < missing) throw error;
    for (const holder of chosen) asked.add(holder);
    await drop(chosen);
  }

  #whyNot(wanted: ArenasWanted): Refusal | undefined {
    this.#checkOwn(wanted);
    return this.#whyPromised(wanted) ?? this.#whyNoRoom(wanted);
  }

  /** A worker may keep arenas that it was told to give up. */
  #checkOwn({ id, sizes, most }: ArenasWanted): void {
    const kept = this.usedBy(id);
    const needed = sum(sizes);
    if (kept + needed <= most) return;
    const bytes = { kept: formatMemorySize(kept), needed: formatMemorySize(needed) };
    throw new ProxyError('ARENAS_KEPT', { id, ...bytes, limit: formatMemorySize(most) });
  }

  /** Arenas that stay for the next suspension must not take the memory of pods. */
  async #relieveNode(): Promise<void> {
    if (this.used === 0) return;
    const { total, available } = this.#memory;
    const over = Math.max(total * RESERVE - available, this.used - this.limit);
    const chosen = this.#chooseUnused(over);
    await drop(chosen);
  }

  /** Bytes of allocations without a promise. */
  #without(promised: PromisedMemory): number {
    return this.#held.bytes((allocation) => !promised.includes(allocation));
  }

  /** Other allocations have what is not promised. */
  #whyPromised({ id, sizes, again }: ArenasWanted): Refusal | undefined {
    const promised = this.#options.promised();
    if (promised.bytes === 0 || promised.includes(id)) return undefined;
    const bytes = sum(sizes) + again;
    const left = this.limit - promised.bytes - this.#without(promised) + again;
    if (bytes <= left) return undefined;
    const error = new ProxyError('HOST_MEMORY_PROMISED', {
      id,
      needed: formatMemorySize(bytes),
      left: formatMemorySize(Math.max(0, left)),
      limit: formatMemorySize(this.limit),
      promised: formatMemorySize(promised.bytes),
    });
    return { error, missing: bytes - left, helps: (allocation) => !promised.includes(allocation) };
  }

  #whyNoRoom({ id, sizes }: ArenasWanted): Refusal | undefined {
    if (sizes.length === 0) return undefined;
    const bytes = sum(sizes);
    const helps = () => true;
    const { limit } = this;
    const needed = formatMemorySize(bytes);
    const over = this.used + bytes - limit;
    if (over > 0) {
      const left = formatMemorySize(Math.max(0, limit - this.used));
      const values = { id, needed, left, limit: formatMemorySize(limit) };
      return { helps, missing: over, error: new ProxyError('HOST_MEMORY_NOT_LEFT', values) };
    }
    const low = this.#whyLow(bytes);
    if (!low) return undefined;
    const { missing, ...values } = low;
    return { helps, missing, error: new ProxyError('HOST_MEMORY_LOW', { id, ...values }) };
  }

  /** The figures if the node has too little available memory. */
  #whyLow(bytes: number) {
    const { total, available } = this.#memory;
    const reserve = Math.floor(total * RESERVE);
    const missing = this.#pending + bytes + reserve - available;
    if (missing <= 0) return undefined;
    return {
      missing,
      needed: formatMemorySize(bytes),
      left: formatMemorySize(Math.max(0, available - this.#pending)),
      reserve: formatMemorySize(reserve),
    };
  }

  /** The largest unused arenas that have `bytes` together, or all. */
  #chooseUnused(bytes: number, may: (holder: ArenaHolder) => boolean = () => true): ArenaHolder[] {
    const unused = [...this.#holders]
      .filter((holder) => holder.unusedArena > 0 && may(holder))
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

/** Some may keep theirs. */
async function drop(holders: readonly ArenaHolder[]): Promise<void> {
  await Promise.allSettled(holders.map((holder) => holder.dropArena()));
}

function sum(bytes: readonly number[]): number {
  return bytes.reduce((total, each) => total + each, 0);
}
