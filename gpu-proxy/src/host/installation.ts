import { existsSync } from 'node:fs';
import path from 'node:path';
import { versionName } from '@nvidia-virtual/node-state/version-name';
import { ProxyError } from '@nvidia-virtual/service/errors';

/**
 * The native parts of one build, under one directory.
 */
export interface Installation {
  /**
   * Contains libcuda.so.1 and libnvidia-ml.so.1, links to them without `.1`, and no other library,
   * because programs have it in their search path.
   */
  readonly interposerDirectory: string;
  readonly worker: string;
  readonly arbiter: string;
  readonly simulatedDriver: string;
  readonly addon: string;
  /** Closes the connections of clients. */
  readonly closer: string;
  /** Starts processes that outlive the container of gpu-proxy. */
  readonly launcher: string;
  /** Populates memory files. */
  readonly arena: string;
  /** Holds the files of a session whose worker is in a file. */
  readonly keeper: string;
  /**
   * Directory of all builds that containers use, and the name of this build in it; undefined: this
   * is the only build.
   */
  readonly versions?: string | undefined;
  readonly version?: string | undefined;
}

const REPOSITORY = path.resolve(import.meta.dirname, '../../..');
export const DEFAULT_ROOT = path.join(REPOSITORY, 'build', 'release');

/** Paths in CMake's build directory. */
const BUILT = {
  interposerDirectory: 'interposer',
  worker: 'native/worker/nvidia-virtual-worker',
  arbiter: 'native/arbiter/nvidia-virtual-arbiter',
  simulatedDriver: 'native/simulator/libsimulator-cuda.so.1',
  addon: 'native/addon/nvidia-virtual.node',
  closer: 'native/closer/nvidia-virtual-closer',
  launcher: 'native/launcher/nvidia-virtual-launcher',
  arena: 'native/arena/nvidia-virtual-arena',
  keeper: 'native/keeper/nvidia-virtual-keeper',
};
type Part = keyof typeof BUILT;
/** Paths in an image, and in the directory of a version on a host. */
const INSTALLED = {
  ...forEachPart((part) => path.basename(BUILT[part])),
  interposerDirectory: 'lib',
};

/**
 * @param root directory of the build; by default NVIDIA_VIRTUAL_BUILD, otherwise the release build
 * of this repository
 */
export function locateInstallation(
  root = process.env['NVIDIA_VIRTUAL_BUILD'] ?? DEFAULT_ROOT,
): Installation {
  const installation = existsSync(path.join(root, INSTALLED.interposerDirectory))
    ? partsIn(root, INSTALLED)
    : partsIn(root, BUILT);
  const { interposerDirectory, ...programs } = installation;
  for (const file of [
    path.join(interposerDirectory, 'libcuda.so.1'),
    path.join(interposerDirectory, 'libnvidia-ml.so.1'),
    ...Object.values(programs),
  ])
    if (!existsSync(file)) throw new ProxyError('BUILD_MISSING', { path: file });
  return installation;
}

/**
 * Replaces parts that run on the host by their copies in the version directory of this build on the
 * host, because the image goes with the container. CMake's build directory has no version and is
 * used directly.
 * @throws ProxyError VERSION_MISSING
 */
export function installOnHost(installation: Installation, versions: string): Installation {
  const root = path.dirname(installation.worker);
  if (path.basename(installation.interposerDirectory) !== INSTALLED.interposerDirectory)
    return { ...installation, versions };
  const version = versionName(root);
  const directory = path.join(versions, version);
  const parts = partsIn(directory, INSTALLED);
  const { worker, arbiter, simulatedDriver, arena, keeper } = parts;
  if (!existsSync(worker)) throw new ProxyError('VERSION_MISSING', { version, directory });
  const onHost = { worker, arbiter, simulatedDriver, arena, keeper };
  return { ...installation, ...onHost, versions, version };
}

/** Path of a build's worker; undefined: of this build. @throws ProxyError VERSION_MISSING */
export function workerOf({ worker, versions }: Installation, version: string | undefined): string {
  if (version === undefined || versions === undefined) return worker;
  const directory = path.join(versions, path.basename(version));
  const other = path.join(directory, INSTALLED.worker);
  if (!existsSync(other)) throw new ProxyError('VERSION_MISSING', { version, directory });
  return other;
}

function partsIn(root: string, parts: Readonly<Record<Part, string>>): Record<Part, string> {
  return forEachPart((part) => path.resolve(root, parts[part]));
}

function forEachPart(pathOf: (part: Part) => string): Record<Part, string> {
  const parts = Object.keys(BUILT) as Part[];
  return Object.fromEntries(parts.map((part) => [part, pathOf(part)])) as Record<Part, string>;
}
