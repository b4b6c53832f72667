import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const REPOSITORY = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
export const GPU_PROXY = path.join(REPOSITORY, 'gpu-proxy', 'bin', 'gpu-proxy.js');
/** The build, found as by gpu-proxy: the environment can select another one than the release. */
export const RELEASE =
  process.env['NVIDIA_VIRTUAL_BUILD'] ?? path.join(REPOSITORY, 'build', 'release');
export const INTERPOSER = path.join(RELEASE, 'interposer');
