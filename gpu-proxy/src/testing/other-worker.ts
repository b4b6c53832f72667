import { mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { DEFAULT_ROOT } from '../host/installation.js';

const BUILT = process.env['NVIDIA_VIRTUAL_BUILD'] ?? DEFAULT_ROOT;
/** The built workers, with those that tests use instead. */
export const BUILT_WORKERS = path.join(BUILT, 'native', 'worker');

/**
 * Creates a copy of the build without a worker, for NVIDIA_VIRTUAL_BUILD.
 * @returns the directory for the worker
 */
export function makeBuildWithoutWorker(directory: string): string {
  const native = path.join(BUILT, 'native');
  const workers = path.join(directory, 'native', 'worker');
  mkdirSync(workers, { recursive: true });
  symlinkSync(path.join(BUILT, 'interposer'), path.join(directory, 'interposer'));
  for (const part of readdirSync(native).filter((name) => name !== 'worker'))
    symlinkSync(path.join(native, part), path.join(directory, 'native', part));
  return workers;
}
