import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ProxyError } from './errors.js';

/** The native parts that belong together: they are of one build, and lie under one directory as CMake leaves them. */
export interface Installation {
  /** Holds libcuda.so.1, and nothing else that a program could pick up by accident. */
  readonly interposerDirectory: string;
  readonly worker: string;
  readonly arbiter: string;
  readonly simulatedDriver: string;
  readonly addon: string;
}

const REPOSITORY = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
export const DEFAULT_ROOT = path.join(REPOSITORY, 'build', 'release');

/** @param root where the build is; by default NVIDIA_VIRTUAL_BUILD, else the release build of this repository. */
export function locateInstallation(root = process.env['NVIDIA_VIRTUAL_BUILD'] ?? DEFAULT_ROOT): Installation {
  const installation = {
    interposerDirectory: path.resolve(root, 'interposer'),
    worker: path.resolve(root, 'native/worker/nvidia-virtual-worker'),
    arbiter: path.resolve(root, 'native/arbiter/nvidia-virtual-arbiter'),
    simulatedDriver: path.resolve(root, 'native/simulator/libsimulator-cuda.so.1'),
    addon: path.resolve(root, 'native/addon/nvidia-virtual.node'),
  };
  const files = { ...installation, interposerDirectory: path.join(installation.interposerDirectory, 'libcuda.so.1') };
  for (const file of Object.values(files)) {
    if (!existsSync(file)) throw new ProxyError('BUILD_MISSING', { path: file });
  }
  return installation;
}
