import { copyFileSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { DEFAULT_ROOT } from '../host/installation.js';

interface Lie {
  /** Quota in bytes of the allocation whose workers lie. */
  readonly quota: number;
  /** Bytes of GPU memory that they use, while their slots of the quota file say 0. */
  readonly taken: number;
}

const BUILT = process.env['NVIDIA_VIRTUAL_BUILD'] ?? DEFAULT_ROOT;

/**
 * Creates a worker in this directory that uses memory without charging it, like one that a program
 * has taken over. It serves only the allocation with that quota. @returns its path
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
 * Creates a copy of the build with this worker, for NVIDIA_VIRTUAL_BUILD. @returns its directory
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
