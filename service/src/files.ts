import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';

/**
 * Prefixes of incomplete entries: partly created, partly removed. Those of a dead process are
 * deleted by removeUnfinished().
 */
const NEW = '.new-';
const GONE = '.gone-';
/** Retries, because an exiting process may still write into the directory. */
const REMOVAL = { recursive: true, force: true, maxRetries: 3, retryDelay: 10 } as const;

/**
 * Replaces the file atomically: a reader sees the old text or the new one, also after a kill of
 * this process.
 * @param options.durable whether this also holds after a crash of the machine
 */
export function writeFileAtomically(file: string, text: string, { durable = false } = {}): void {
  const unfinished = prefixed(NEW, file);
  const fd = openSync(unfinished, 'w', 0o600);
  try {
    writeSync(fd, text);
    if (durable) fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(unfinished, file);
}

/**
 * fsync: makes the content of a file, or the entries of a directory, survive a crash of the
 * machine.
 */
export function syncToDisk(file: string): void {
  const fd = openSync(file, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

export function readIfThere(file: string): string | undefined {
  return ifThere(() => readFileSync(file, 'utf8'));
}

/** Returns the result of `read`; undefined if its file does not exist. */
export function ifThere<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The names in a directory. Empty if it cannot be read, for example because it is not there. */
export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Creates a directory with the content that `fill` writes, atomically. */
export function makeDirectoryAtomically(
  directory: string,
  mode: number,
  fill: (unfinished: string) => void,
): void {
  const unfinished = prefixed(NEW, directory);
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { mode });
  try {
    fill(unfinished);
    renameSync(unfinished, directory);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    throw error;
  }
}

/** Removes a directory atomically, if it exists. */
export function removeDirectoryAtomically(directory: string): void {
  const gone = prefixed(GONE, directory);
  rmSync(gone, REMOVAL);
  try {
    renameSync(directory, gone);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  rmSync(gone, REMOVAL);
}

/**
 * Removes incomplete entries of a killed process from a directory. @param underWayMs minimum age in
 * milliseconds: younger entries may still be in progress.
 */
export function removeUnfinished(directory: string, underWayMs = 0): void {
  const latest = underWayMs === 0 ? Number.MAX_VALUE : Date.now() - underWayMs;
  for (const name of readdirSync(directory)) {
    const file = path.join(directory, name);
    if (name.startsWith(GONE) || (name.startsWith(NEW) && isFrom(file, latest)))
      rmSync(file, REMOVAL);
  }
}

/** Whether the file exists and was last changed at or before this time, in milliseconds. */
function isFrom(file: string, latest: number): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY) <= latest;
}

function prefixed(prefix: string, file: string): string {
  return path.join(path.dirname(file), `${prefix}${path.basename(file)}`);
}
