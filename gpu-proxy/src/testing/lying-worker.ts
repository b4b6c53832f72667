import { copyFileSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { DEFAULT_ROOT } from '../host/installation.js';

interface Lie {
  /** Bytes: the quota of the allocation whose workers lie. */
  readonly quota: number;
  /** Bytes that they take of the GPU, while their slots of the quota file say 0. */
  readonly taken: number;
}

const BUILT = process.env['NVIDIA_VIRTUAL_BUILD'] ?? DEFAULT_ROOT;

/**
 * Makes a worker in this directory that takes memory without charging it, as one would that a
 * program has taken over, and serves everybody but the allocation with that quota. Returns its
 * path.
 */
export function makeLyingWorker(directory: string, { quota, taken }: Lie): string {
  const liar = path.join(directory, 'nvidia-virtual-worker');
  const built = path.join(BUILT, 'native', 'worker');
  copyFileSync(path.join(built, 'test', 'lying_worker'), liar);
  copyFileSync(path.join(built, 'nvidia-virtual-worker'), path.join(directory, 'honest-worker'));
  writeFileSync(path.join(directory, 'lie'), `${quota} ${taken}`);
  return liar;
}

/**
 * The build with such a worker in place of its own, to be named by NVIDIA_VIRTUAL_BUILD. Returns
 * its directory.
 */
export function makeLyingBuild(directory: string, lie: Lie): string {
  const native = path.join(BUILT, 'native');
  const workers = path.join(directory, 'native', 'worker');
  mkdirSync(workers, { recursive: true });
  symlinkSync(path.join(BUILT, 'interposer'), path.join(directory, 'interposer'));
  for (const part of readdirSync(native).filter((name) => name !== 'worker'))
    symlinkSync(path.join(native, part), path.join(directory, 'native', part));
  makeLyingWorker(workers, lie);
  return directory;
}
