import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const REPOSITORY = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
/** Script of the command gpu-proxy, for Node. */
export const GPU_PROXY = path.join(REPOSITORY, 'gpu-proxy', 'bin', 'gpu-proxy.js');

export function buildDirectory(preset: string): string {
  return path.join(REPOSITORY, 'build', preset);
}

/** Cache for downloads and tools outside of the tree, one directory per version. */
export function cacheDirectory(env = process.env): string {
  return path.join(
    env['XDG_CACHE_HOME'] || path.join(env['HOME'] ?? '/tmp', '.cache'),
    'nvidia-virtual',
  );
}
