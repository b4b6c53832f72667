import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ProxyError } from './errors.js';
import { versionName } from './version-name.js';

/** The native parts that belong together: they are of one build, and lie under one directory as CMake leaves them. */
export interface Installation {
  /** Holds libcuda.so.1, and nothing else that a program could pick up by accident. */
  readonly interposerDirectory: string;
  readonly worker: string;
  readonly arbiter: string;
  readonly simulatedDriver: string;
  readonly addon: string;
  /** Starts what is to outlive the container of gpu-proxy. */
  readonly launcher: string;
  /** Where the builds are that containers have, and which of them this one is; undefined: there is only this one. */
  readonly versions?: string | undefined;
  readonly version?: string | undefined;
}

const REPOSITORY = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
export const DEFAULT_ROOT = path.join(REPOSITORY, 'build', 'release');

/** As CMake leaves them. */
const BUILT = {
  interposerDirectory: 'interposer',
  worker: 'native/worker/nvidia-virtual-worker',
  arbiter: 'native/arbiter/nvidia-virtual-arbiter',
  simulatedDriver: 'native/simulator/libsimulator-cuda.so.1',
  addon: 'native/addon/nvidia-virtual.node',
  launcher: 'native/launcher/nvidia-virtual-launcher',
};
/** As an image has them, and the directory of a version on a host. */
const INSTALLED = {
  interposerDirectory: 'lib',
  worker: 'nvidia-virtual-worker',
  arbiter: 'nvidia-virtual-arbiter',
  simulatedDriver: 'libsimulator-cuda.so.1',
  addon: 'nvidia-virtual.node',
  launcher: 'nvidia-virtual-launcher',
};

/** @param root where the build is; by default NVIDIA_VIRTUAL_BUILD, else the release build of this repository. */
export function locateInstallation(root = process.env['NVIDIA_VIRTUAL_BUILD'] ?? DEFAULT_ROOT): Installation {
  const installation = existsSync(path.join(root, INSTALLED.interposerDirectory)) ? partsIn(root, INSTALLED) : partsIn(root, BUILT);
  const { worker, arbiter, simulatedDriver, addon } = installation;
  for (const file of [path.join(installation.interposerDirectory, 'libcuda.so.1'), worker, arbiter, simulatedDriver, addon])
    requireFile(file);
  return installation;
}

/**
 * The parts that run among the host's files, from the directory of this build's version there: the image is gone when the container is.
 * A build as CMake leaves it is no version, and runs from where it is.
 * @throws ProxyError BUILD_MISSING, VERSION_MISSING
 */
export function installOnHost(installation: Installation, versions: string): Installation {
  const root = path.dirname(installation.worker);
  requireFile(installation.launcher);
  if (path.basename(installation.interposerDirectory) !== INSTALLED.interposerDirectory) return { ...installation, versions };
  const version = versionName(root);
  const directory = path.join(versions, version);
  const { worker, arbiter, simulatedDriver } = partsIn(directory, INSTALLED);
  if (!existsSync(worker)) throw new ProxyError('VERSION_MISSING', { version, directory });
  return { ...installation, worker, arbiter, simulatedDriver, versions, version };
}

/** The worker of a build; undefined: of this one. @throws ProxyError VERSION_MISSING */
export function workerOf({ worker, versions }: Installation, version: string | undefined): string {
  if (version === undefined || versions === undefined) return worker;
  const directory = path.join(versions, path.basename(version));
  const other = path.join(directory, INSTALLED.worker);
  if (!existsSync(other)) throw new ProxyError('VERSION_MISSING', { version, directory });
  return other;
}

function partsIn(root: string, parts: typeof BUILT): Installation {
  const at = (part: keyof typeof BUILT) => path.resolve(root, parts[part]);
  return {
    interposerDirectory: at('interposerDirectory'),
    worker: at('worker'),
    arbiter: at('arbiter'),
    simulatedDriver: at('simulatedDriver'),
    addon: at('addon'),
    launcher: at('launcher'),
  };
}

function requireFile(file: string): void {
  if (!existsSync(file)) throw new ProxyError('BUILD_MISSING', { path: file });
}
