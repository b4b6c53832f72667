import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { PluginError } from './errors.js';

/** `auto` and `simulated` do not need a driver. */
export type Backend = 'auto' | 'real' | 'simulated';

interface NodeCheckOptions {
  readonly node: string;
  readonly backend: Backend;
  /** The directory of the node that holds our files. It need not exist yet. */
  readonly directory: string;
}

/** Files of the node. Tests replace them. */
export interface NodeFiles {
  /** Directory of the driver's files in /proc, which are the same in every container. */
  readonly driver: string;
  /** Mounts of the node's first process. The pid namespace must be the node's. */
  readonly mounts: string;
  /** The node's /sys/fs, with what is mounted below it. */
  readonly fileSystems: string;
}

const NODE_FILES: NodeFiles = {
  driver: '/proc/driver/nvidia',
  mounts: '/proc/1/mountinfo',
  fileSystems: '/host/sys/fs',
};

/** The first driver branch with the CUDA version that a worker requires. */
const OLDEST_DRIVER = 550;
/** SELinux types of files that a container may read and execute. */
const READABLE = /:container_(ro_)?file_t:/;

/**
 * Finds what this node lacks, apart from other software on it. Takes some milliseconds.
 * @returns one error for each problem
 */
export function checkNode(
  { node, backend, directory }: NodeCheckOptions,
  files: NodeFiles = NODE_FILES,
): PluginError[] {
  return [
    ...(backend === 'real' ? driverProblems(node, files.driver) : []),
    ...directoryProblems(node, directory, files.mounts),
    ...selinuxProblems(node, directory, files.fileSystems),
    ...cgroupProblems(node, files.fileSystems),
  ];
}

/** UUIDs of the GPUs for which the kernel module is loaded, in the order of their indexes. */
export function listGpus({ driver }: Pick<NodeFiles, 'driver'> = NODE_FILES): string[] {
  const gpus = path.join(driver, 'gpus');
  if (!existsSync(gpus)) return [];
  return readdirSync(gpus)
    .toSorted()
    .map((gpu) => {
      const text = read(path.join(gpus, gpu, 'information'));
      return /^GPU UUID:\s+(GPU-[\da-f-]{36})/im.exec(text)?.[1] ?? '';
    });
}

function driverProblems(node: string, driver: string): PluginError[] {
  const text = read(path.join(driver, 'version'));
  const version = /Kernel Module\b.*?\s(\d+\.\d+(?:\.\d+)?)\s/.exec(text)?.[1];
  if (version === undefined)
    return [new PluginError('DRIVER_MISSING', { node, oldest: OLDEST_DRIVER })];
  if (Number.parseInt(version, 10) >= OLDEST_DRIVER) return [];
  return [new PluginError('DRIVER_OLD', { node, version, oldest: OLDEST_DRIVER })];
}

/** Workers and libraries are executed from the directory. */
function directoryProblems(node: string, directory: string, mounts: string): PluginError[] {
  const points = read(mounts)
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, , , , point = '']) => isBelow(directory, point));
  // Later mounts cover earlier ones at the same point.
  const deepest = points.reduce<string[] | undefined>(
    (best, fields) => ((fields[4] ?? '').length >= (best?.[4] ?? '').length ? fields : best),
    undefined,
  );
  const [, , , , mount = '', flags = ''] = deepest ?? [];
  return flags.split(',').includes('noexec')
    ? [new PluginError('DIRECTORY_NOEXEC', { node, directory, mount })]
    : [];
}

function isBelow(directory: string, point: string): boolean {
  return point === '/' || directory === point || directory.startsWith(`${point}/`);
}

function selinuxProblems(node: string, directory: string, fileSystems: string): PluginError[] {
  const enforcing = read(path.join(fileSystems, 'selinux', 'enforce')).trim() === '1';
  // `install` labels it, so a directory that does not exist yet lacks nothing.
  if (!enforcing || !existsSync(directory) || READABLE.test(labelOf(directory))) return [];
  return [new PluginError('DIRECTORY_LABEL', { node, directory })];
}

/** Node.js cannot read extended attributes. */
function labelOf(directory: string): string {
  return spawnSync('stat', ['--format=%C', directory], { encoding: 'utf8' }).stdout ?? '';
}

function cgroupProblems(node: string, fileSystems: string): PluginError[] {
  const cgroup = path.join(fileSystems, 'cgroup');
  const known = ['cgroup.controllers', 'memory'].some((name) =>
    existsSync(path.join(cgroup, name)),
  );
  return known || !existsSync(fileSystems) ? [] : [new PluginError('CGROUPS_MISSING', { node })];
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
