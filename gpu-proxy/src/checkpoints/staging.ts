import { closeSync, lstatSync, mkdirSync, statfsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { AllocationHost } from '../allocations/allocation-host.js';
import type { Launcher } from '../host/launcher.js';

/** In memory, like all that CRIU writes. It knows nothing of a worker. */
const KERNEL = '/dev/shm/nvidia-virtual-criu';
const MiB = 2 ** 20;
/** A process has more than its pages: threads, mappings, lists of pages. */
const MORE = 128 * MiB;
const MORE_PER_BYTE = 1 / 64;
/** CRIU stops with less: a file ends in the midst of its last pages. */
const FULL = MiB;

/**
 * A directory for files of CRIU, which are not encrypted: in memory, and without a path, so that
 * only root reaches it. The kernel limits its size, and removes it with the last process that has
 * it.
 */
export class Staging {
  readonly bytes: number;
  readonly #file: number;
  readonly #giveBack: () => void;

  private constructor(bytes: number, file: number, giveBack: () => void) {
    this.bytes = bytes;
    this.#file = file;
    this.#giveBack = giveBack;
  }

  /**
   * @param bytes limit on its files
   * @param beside bytes that are needed at the same time
   * @throws Error if the node has too little memory, or a system error
   */
  static async make(
    bytes: number,
    { addon, arenas }: Pick<AllocationHost, 'addon' | 'arenas'>,
    beside = 0,
  ): Promise<Staging> {
    const giveBack = await arenas.setAside(bytes + beside);
    try {
      return new Staging(bytes, addon.memoryDirectory(bytes), giveBack);
    } catch (error) {
      giveBack();
      throw error;
    }
  }

  get directory(): string {
    return `/proc/self/fd/${this.#file}`;
  }

  get isFull(): boolean {
    const { bavail, bsize } = statfsSync(this.directory);
    return bavail * bsize < FULL;
  }

  close(): void {
    closeSync(this.#file);
    this.#giveBack();
  }
}

/** Limit on CRIU's files of a process, by what the kernel says about its memory. */
export async function mostOfDump(pid: number): Promise<number> {
  const memory = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  const bytes = (name: string) =>
    Number(new RegExp(`^${name}: *(\\d+) kB$`, 'm').exec(memory)?.[1] ?? 0) * 1024;
  const all = ['Rss', 'Swap', 'Shared_Hugetlb', 'Private_Hugetlb'].map(bytes);
  return Math.ceil(all.reduce((sum, each) => sum + each) * (1 + MORE_PER_BYTE)) + MORE;
}

/**
 * The directory, as a path of the node, for what CRIU finds out about the kernel. It stays until
 * the node boots. @throws Error if another user has taken the place, or a system error
 */
export function makeKernelDirectory(launcher: Pick<Launcher, 'seen'>): string {
  const seen = launcher.seen(KERNEL);
  mkdirSync(seen, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(seen);
  // No other user may be able to replace the directory or its files.
  if (uid !== 0 || (mode & 0o077) !== 0)
    throw new Error(`${KERNEL} is not of root alone: remove it`);
  return KERNEL;
}
