import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import path from 'node:path';

/** What has a name that begins so is half made, or half removed: whoever finds it of a proxy that is gone removes it. */
const NEW = '.new-';
const GONE = '.gone-';
/** Who ends may still write into what is being removed. */
const REMOVAL = { recursive: true, force: true, maxRetries: 3, retryDelay: 10 } as const;

/**
 * Replaces the file in one step: a reader, and a proxy that starts after a kill, sees the old text or the new one.
 * @param options.durable whether that holds after a crash of the machine too.
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

/** What is in the file, or which entries the directory has, is there after a crash of the machine too. */
export function syncToDisk(file: string): void {
  const fd = openSync(file, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

export function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Makes a directory with all that `fill` puts into it, in one step. */
export function makeDirectoryAtomically(directory: string, mode: number, fill: (unfinished: string) => void): void {
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

/** Removes a directory and all in it, if it is there; it is whole or not at all. */
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

/** What a proxy that was killed had begun to make or to remove in a directory. @param underWayMs what is younger may still be made, and is left. */
export function removeUnfinished(directory: string, underWayMs = 0): void {
  const latest = underWayMs === 0 ? Number.MAX_VALUE : Date.now() - underWayMs;
  for (const name of readdirSync(directory)) {
    const file = path.join(directory, name);
    if (name.startsWith(GONE) || (name.startsWith(NEW) && isFrom(file, latest))) rmSync(file, REMOVAL);
  }
}

/** Whether it is there and was last changed at this time or before, in milliseconds. */
function isFrom(file: string, latest: number): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY) <= latest;
}

function prefixed(prefix: string, file: string): string {
  return path.join(path.dirname(file), `${prefix}${path.basename(file)}`);
}
