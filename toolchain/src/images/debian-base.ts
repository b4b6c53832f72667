import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '../command.js';
import { ToolchainError } from '../errors.js';
import { cacheDirectory } from '../repository.js';

const SUITE = 'bookworm';
/** Packages beyond a minimal Debian: libraries for Node, and Redis for tests. */
const PACKAGES = ['libstdc++6', 'redis-server'];
/** Excluded paths: documentation. */
const LEFT_OUT = [
  '/usr/share/doc/*',
  '/usr/share/man/*',
  '/usr/share/locale/*',
  '/usr/share/info/*',
  '/var/lib/apt/lists/*',
  '/var/cache/apt/*',
];

/**
 * Creates an archive of a Debian root file system, once. It is the base image if no registry is
 * reachable.
 */
export async function debianBase(say: (line: string) => void = () => {}): Promise<string> {
  const archive = path.join(cacheDirectory(), `debian-${SUITE}-1.tar`);
  if (existsSync(archive)) return archive;
  say(`Making a Debian base image (half a minute, once): ${archive}`);
  mkdirSync(path.dirname(archive), { recursive: true });
  const unfinished = `${archive.slice(0, -'.tar'.length)}.${process.pid}.tar`;
  const left = LEFT_OUT.map((pattern) => `--dpkgopt=path-exclude=${pattern}`);
  const args = [
    '--variant=minbase',
    `--include=${PACKAGES.join(',')}`,
    ...left,
    '--aptopt=Apt::Install-Recommends "false"',
    SUITE,
    unfinished,
  ];
  try {
    const { status, output } = await runCommand('mmdebstrap', args);
    if (status !== 0)
      throw new ToolchainError(
        `A Debian base image could not be created: \`mmdebstrap ` +
          `${args.join(' ')}\` failed:\n${output}`,
      );
    renameSync(unfinished, archive);
  } finally {
    rmSync(unfinished, { force: true });
  }
  return archive;
}
