import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { cacheDirectory } from '@nvidia-virtual/toolchain/repository';

interface Userland {
  readonly name: string;
  /** Its ld.so, which can be run as a program. */
  readonly loader: string;
  /** Where its C library is. */
  readonly libraries: string;
}

/**
 * The oldest that this machine's package mirror has: its C library is older than the one with which
 * we are built.
 */
const SUITE = 'bullseye';

/** Unpacked, not installed: nothing of it is run but its loader. */
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
