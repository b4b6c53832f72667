import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { cacheDirectory } from '@nvidia-virtual/toolchain/repository';

interface Userland {
  readonly name: string;
  /** Its ld.so, which can be run as a program. */
  readonly loader: string;
  /** Directory of its C library. */
  readonly libraries: string;
}

/**
 * The oldest release on this machine's package mirror. Its C library is older than the one of the
 * build.
 */
const SUITE = 'bullseye';

/** Unpacked, not installed: only its loader is run. */
export async function oldUserland(say: (line: string) => void): Promise<Userland[]> {
  const directory = path.join(cacheDirectory(), `debian-${SUITE}-libc`);
  if (!existsSync(directory)) {
    say(`Fetching the C library of Debian ${SUITE} (once) into ${directory}`);
    const unfinished = `${directory}.${process.pid}`;
    mkdirSync(path.dirname(directory), { recursive: true });
    const { status, output } = await runCommand('mmdebstrap', [
      '--variant=extract',
      '--include=libc6',
      SUITE,
      unfinished,
    ]);
    if (status !== 0)
      throw new Error(`the C library of Debian ${SUITE} cannot be fetched:\n${output}`);
    rmSync(directory, { recursive: true, force: true });
    renameSync(unfinished, directory);
  }
  const libraries = path.join(directory, 'lib', 'x86_64-linux-gnu');
  return [
    { name: `Debian ${SUITE}`, loader: path.join(libraries, 'ld-linux-x86-64.so.2'), libraries },
  ];
}
