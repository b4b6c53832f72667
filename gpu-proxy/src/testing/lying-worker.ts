import { copyFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { BUILT_WORKERS, makeBuildWithoutWorker } from './other-worker.js';

interface Lie {
  /** Quota in bytes of the allocation whose workers lie. */
  readonly quota: number;
  /** Bytes of GPU memory that they use, while their slots of the quota file say 0. */
  readonly taken: number;
}

/**
 * Creates a worker in this directory that uses memory without charging it, like one that a program
 * has taken over. It serves only the allocation with that quota. @returns its path
 */
export function makeLyingWorker(directory: string, { quota, taken }: Lie): string {
  const liar = path.join(directory, 'nvidia-virtual-worker');
  const honest = path.join(directory, 'honest-worker');
  copyFileSync(path.join(BUILT_WORKERS, 'test', 'lying_worker'), liar);
  copyFileSync(path.join(BUILT_WORKERS, 'nvidia-virtual-worker'), honest);
  writeFileSync(path.join(directory, 'lie'), `${quota} ${taken}`);
  return liar;
}

/**
 * Creates a copy of the build with this worker, for NVIDIA_VIRTUAL_BUILD. @returns its directory
 */
export function makeLyingBuild(directory: string, lie: Lie): string {
  makeLyingWorker(makeBuildWithoutWorker(directory), lie);
  return directory;
}
