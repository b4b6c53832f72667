import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import path from 'node:path';
import { filesOfBuild, versionName } from '@nvidia-virtual/node-state/version-name';
import { systemReason } from '@nvidia-virtual/service/errors';
import {
  makeDirectoryAtomically,
  removeDirectoryAtomically,
  syncToDisk,
} from '@nvidia-virtual/service/files';
import { PluginError } from './errors.js';

const LIBRARY = path.join('lib', 'libcuda.so.1');
/** Younger versions are kept: a starting plugin may need them. */
const STARTING_MS = 3600_000;

/**
 * An installed build in an immutable directory of the host: containers map its library, and workers
 * are started from it.
 */
export interface Version {
  /** Derived from the content. */
  readonly name: string;
  readonly directory: string;
  readonly library: string;
}

/**
 * Installs the build if it is missing, atomically and durably: containers that start after a boot
 * use it again.
 * @throws PluginError INSTALLATION_BROKEN, VERSION_NOT_INSTALLED
 */
export function installVersion(installation: string, versions: string): Version {
  const files = filesOf(installation);
  const name = nameOf(installation, files);
  const directory = path.join(versions, name);
  try {
    mkdirSync(versions, { recursive: true, mode: 0o755 });
    if (existsSync(directory)) touch(directory);
    else
      makeDirectoryAtomically(directory, 0o755, (unfinished) =>
        copy(installation, files, unfinished),
      );
    syncToDisk(versions);
  } catch (error) {
    throw new PluginError('VERSION_NOT_INSTALLED', {
      version: name,
      directory: versions,
      reason: systemReason(error),
    });
  }
  return { name, directory, library: path.join(directory, LIBRARY) };
}

/**
 * Removes versions that neither containers nor plugins need. @param inUse versions of containers.
 * @returns the names of the removed versions
 */
export function removeOldVersions(
  versions: string,
  current: Version,
  inUse: ReadonlySet<string>,
): string[] {
  const asked = Date.now() - STARTING_MS;
  const old = readdirSync(versions).filter(
    (name) =>
      /^(\.(new|gone)-)?[0-9a-f]{16}$/.test(name) && name !== current.name && !inUse.has(name),
  );
  const removed = old.filter((name) => statSync(path.join(versions, name)).mtimeMs < asked);
  for (const name of removed) remove(versions, name);
  return removed;
}

/** Removes a version atomically. A name with `.gone-` marks an interrupted removal. */
function remove(versions: string, name: string): void {
  const directory = path.join(versions, name);
  if (name.startsWith('.gone-')) rmSync(directory, { recursive: true, force: true });
  else removeDirectoryAtomically(directory);
}

function filesOf(installation: string): string[] {
  const relative = attempt(installation, () => filesOfBuild(installation));
  if (!relative.includes(LIBRARY))
    throw new PluginError('INSTALLATION_BROKEN', {
      file: path.join(installation, LIBRARY),
      reason: 'it is missing',
    });
  return relative;
}

function nameOf(installation: string, files: readonly string[]): string {
  return attempt(installation, () => versionName(installation, [...files]));
}

function copy(installation: string, files: readonly string[], target: string): void {
  for (const file of files) {
    const to = path.join(target, file);
    mkdirSync(path.dirname(to), { recursive: true, mode: 0o755 });
    copyFileSync(path.join(installation, file), to);
    syncToDisk(to);
    syncToDisk(path.dirname(to));
  }
  syncToDisk(target);
}

function touch(directory: string): void {
  const now = new Date();
  utimesSync(directory, now, now);
}

function attempt<T>(file: string, step: () => T): T {
  try {
    return step();
  } catch (error) {
    throw new PluginError('INSTALLATION_BROKEN', { file, reason: systemReason(error) });
  }
}
