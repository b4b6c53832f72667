import { lstat, opendir } from 'node:fs/promises';
import path from 'node:path';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import type { Logger } from 'pino';

/** An allocation whose workers write a cache of compiled code, and sockets. */
export interface CachedAllocation {
  readonly id: string;
  /** All that its workers write to. */
  readonly directories: readonly string[];
  /** Kills its sessions and empties the directories. */
  end(error: ProxyError): void;
}

interface CacheWatchOptions {
  allocations(): readonly CachedAllocation[];
  readonly logger: Logger;
  /** Bytes on disk. @default 2 GiB */
  readonly limit?: number;
  /** @default 10000 */
  readonly everyMs?: number;
}

/** The driver's own limit is 1 GiB (native/worker/driver/cache.h), which it can briefly exceed. */
const LIMIT = 2 * 2 ** 30;
const EVERY_MS = 10_000;
/** Limit on files and directories. A regular cache has some hundred. */
const MOST_ENTRIES = 100_000;

/**
 * Kills the sessions of an allocation whose cache on disk exceeds its limit. The driver keeps its
 * cache smaller, so only a compromised worker does that.
 */
export class CacheWatch {
  readonly #options: CacheWatchOptions;
  readonly #timer: NodeJS.Timeout;
  #looking = false;

  constructor(options: CacheWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.look(), options.everyMs ?? EVERY_MS).unref();
  }

  end(): void {
    clearInterval(this.#timer);
  }

  /** Checks all caches in sequence. Returns at once if a check is in progress. */
  async look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    const { allocations, limit = LIMIT, logger } = this.#options;
    for (const { id, directories, end } of allocations()) {
      try {
        if (await fitInto(directories, limit)) continue;
        end(new ProxyError('CACHE_BEYOND_LIMIT', { id, limit: formatMemorySize(limit) }));
      } catch (error) {
        logger.warn(
          { allocation: id },
          `the size of ${directories.join(' and ')} is not known: ${systemReason(error)}`,
        );
      }
    }
    this.#looking = false;
  }
}

/**
 * Does not follow symbolic links. A sparse file counts with its blocks on disk. The owner of the
 * directories may remove files during the check.
 */
async function fitInto(all: readonly string[], limit: number): Promise<boolean> {
  const directories = [...all];
  let bytes = 0;
  let entries = 0;
  for (let here = directories.pop(); here !== undefined; here = directories.pop()) {
    const opened = await ifThere(opendir(here));
    if (!opened) continue;
    for await (const entry of opened) {
      const file = path.join(here, entry.name);
      if (entry.isDirectory()) directories.push(file);
      bytes += ((await ifThere(lstat(file)))?.blocks ?? 0) * 512;
      if (bytes > limit || ++entries > MOST_ENTRIES) return false;
    }
  }
  return true;
}

async function ifThere<T>(found: Promise<T>): Promise<T | undefined> {
  return found.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
}
