import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';

/** In memory: what CRIU writes is not encrypted. */
const PARENT = '/dev/shm/nvidia-virtual-checkpoints';

/**
 * A new directory for the files of CRIU.
 * @param name begins with the id of the allocation
 * @throws Error if another user has taken the place, or a system error
 */
export function makeStaging(name: string): string {
  mkdirSync(PARENT, { recursive: true, mode: 0o700 });
  if (!isOwn()) throw new Error(`${PARENT} is not of root alone: remove it`);
  const directory = stagingOf(name);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { mode: 0o700 });
  return directory;
}

export function stagingOf(name: string): string {
  return path.join(PARENT, name);
}

/** Removes what an earlier gpu-proxy has left. @param id of the allocation */
export function removeStagings(id: string): void {
  if (!isOwn()) return;
  for (const name of readdirSync(PARENT).filter((each) => each.startsWith(id)))
    rmSync(path.join(PARENT, name), { recursive: true, force: true });
}

/** Nobody else can exchange anything in it. */
function isOwn(): boolean {
  const about = lstatSync(PARENT, { throwIfNoEntry: false });
  return about?.isDirectory() === true && about.uid === 0 && (about.mode & 0o077) === 0;
}
