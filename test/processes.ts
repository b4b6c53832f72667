import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/**
 * Timeout of waits. Sixty-four programs that start at once on two loaded processors need half a
 * minute.
 */
export const PATIENCE_MS = 120_000;
/** In the command line of a worker that reads NVML. */
const READS_NVML = '\0--processes\0';

/** The child processes of `parent`, from /proc. */
export function childrenOf(parent: number): number[] {
  return numbers().filter((pid) => parentOf(pid) === parent);
}

/** The processes with `text` in their command line, or in their initial environment. */
export function processesWith(text: string, where: 'cmdline' | 'environ' = 'cmdline'): number[] {
  return numbers().filter(
    (pid) => startedWith(pid, where).includes(text) && parentOf(pid) !== undefined,
  );
}

/** The processes that have mapped a file whose path has this text. */
export function processesMapping(text: string): number[] {
  return numbers().filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/maps`, 'utf8').includes(text);
    } catch {
      return false; // ended meanwhile
    }
  });
}

/** Workers that serve programs; `isOurs` chooses. Others read NVML for gpu-proxy. */
export function workersWhere(isOurs: (pid: number) => boolean): number[] {
  return numbers().filter((pid) => {
    // Read once: a reader that starts between two looks would count as a worker.
    const words = startedWith(pid, 'cmdline');
    const serves = words.includes('/nvidia-virtual-worker\0') && !words.includes(READS_NVML);
    return serves && parentOf(pid) !== undefined && isOurs(pid);
  });
}

/** Workers that read NVML for gpu-proxy, and serve no program. */
export function nvmlReaders(): number[] {
  return processesWith(READS_NVML);
}

function numbers(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function startedWith(pid: number, where: 'cmdline' | 'environ'): string {
  try {
    return readFileSync(`/proc/${pid}/${where}`, 'utf8');
  } catch {
    return ''; // ended meanwhile
  }
}

/** Undefined if the process has ended; a zombie counts as ended. */
function parentOf(pid: number): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, parent] = status.slice(status.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' ? undefined : Number(parent);
  } catch {
    return undefined;
  }
}

/** Resident memory of a process in bytes; 0 if it has ended. */
export function residentMemory(pid: number): number {
  try {
    return (
      Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) *
      1024
    );
  } catch {
    return 0;
  }
}

/** Open files of a process without its standard descriptors: names as in /proc, sorted. */
export function openFiles(pid: number): string[] {
  const names = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return []; // closed meanwhile
    }
  });
  return names.map((name) => name.replace(/\d+/g, '#')).sort();
}

/** Names in /dev/shm. */
export function sharedMemory(): string[] {
  return readdirSync('/dev/shm');
}

/**
 * Names in /dev/shm that stay and were not there before. Other processes of the machine have
 * objects there for a while.
 */
export function newSharedMemory(before: readonly string[]): Promise<string[]> {
  return lookUntil(
    () => sharedMemory().filter((name) => !before.includes(name)),
    (names) => names.length === 0,
  );
}

/**
 * Polls `done` every few milliseconds. @returns false after the timeout, measured by watchTime()
 */
export async function until(done: () => boolean, milliseconds = PATIENCE_MS): Promise<boolean> {
  const passed = watchTime();
  while (!done()) {
    if (passed() > milliseconds) return false;
    await pause(3);
  }
  return true;
}

interface Polling {
  readonly milliseconds?: number;
  readonly everyMs?: number;
}

/**
 * Looks again and again until the state fulfils the condition. @returns the last state, also after
 * the timeout
 */
export async function lookUntil<T>(
  look: () => T | Promise<T>,
  holds: (state: T) => boolean,
  { milliseconds = PATIENCE_MS, everyMs = 200 }: Polling = {},
): Promise<T> {
  const passed = watchTime();
  for (;;) {
    const state = await look();
    if (holds(state) || passed() > milliseconds) return state;
    await pause(everyMs);
  }
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/**
 * @returns a function that returns the share of this machine's processor time that its host has
 * given to others since (proc(5), /proc/stat)
 */
export function watchStolen(): () => number {
  const [before, begin] = [stolenMs(), performance.now()];
  return () => (stolenMs() - before) / ((performance.now() - begin) * availableParallelism());
}

/**
 * @returns a function that returns the elapsed milliseconds, without the time that the host gave to
 * others
 */
function watchTime(): () => number {
  const [begin, stolenSince] = [performance.now(), watchStolen()];
  return () => (performance.now() - begin) * (1 - stolenSince());
}

function stolenMs(): number {
  const [, , , , , , , , ticks] = readFileSync('/proc/stat', 'utf8').split(/\s+/, 9);
  return Number(ticks) * 10; // 100 ticks per second
}
