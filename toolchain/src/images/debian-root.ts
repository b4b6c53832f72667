import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { mustRun } from '../command.js';
import { cacheDirectory } from '../repository.js';

/** A minimal Debian with further packages. */
export interface DebianRoot {
  /** Release, such as bookworm. */
  readonly suite: string;
  readonly packages: readonly string[];
  /** Name of the archive in the cache. A change of the packages needs another one. */
  readonly name: string;
  /** Directories as links into /usr, which not every release has by itself. */
  readonly mergedUsr?: boolean;
}

const MERGED_USR = '--setup-hook=/usr/share/mmdebstrap/hooks/merged-usr/setup00.sh';
/** Excluded paths: documentation, except licences. */
const LEFT_OUT = [
  '/usr/share/doc/*',
  '/usr/share/man/*',
  '/usr/share/locale/*',
  '/usr/share/info/*',
  '/var/lib/apt/lists/*',
  '/var/cache/apt/*',
];

/** Creates an archive of a Debian root file system, once, and returns its path. */
export async function debianArchive(
  { name, suite, packages, mergedUsr = false }: DebianRoot,
  say: (line: string) => void = () => {},
): Promise<string> {
  const archive = path.join(cacheDirectory(), `${name}.tar`);
  if (existsSync(archive)) return archive;
  say(`Making a Debian file system (half a minute, once): ${archive}`);
  mkdirSync(path.dirname(archive), { recursive: true });
  const unfinished = `${archive.slice(0, -'.tar'.length)}.${process.pid}.tar`;
  const left = LEFT_OUT.map((pattern) => `--dpkgopt=path-exclude=${pattern}`);
  const args = [
    '--variant=minbase',
    `--include=${packages.join(',')}`,
    ...(mergedUsr ? [MERGED_USR] : []),
    ...left,
    '--dpkgopt=path-include=/usr/share/doc/*/copyright',
    '--aptopt=Apt::Install-Recommends "false"',
    suite,
    unfinished,
  ];
  try {
    await mustRun('mmdebstrap', args, { failure: 'A Debian file system could not be created' });
    renameSync(unfinished, archive);
  } finally {
    rmSync(unfinished, { force: true });
  }
  return archive;
}
