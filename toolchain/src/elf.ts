import { runCommand } from './command.js';
import { ToolchainError } from './errors.js';

/** Libraries and symbol versions that a file needs. */
interface Needs {
  /** `libc.so.6` */
  readonly libraries: readonly string[];
  /** `GLIBC_2.17`, of the symbols that it does not define. */
  readonly versions: readonly string[];
}

/** Reads the dynamic section and the version needs of an ELF file. */
export async function readNeeds(file: string): Promise<Needs> {
  const { status, output } = await runCommand('readelf', [
    '--wide',
    '--dynamic',
    '--version-info',
    file,
  ]);
  if (status !== 0) throw new ToolchainError(`What ${file} needs cannot be read: ${output}`);
  const libraries = [...output.matchAll(/\(NEEDED\).*\[(.+)\]/g)].map(
    (match) => match[1] as string,
  );
  const versions = [...output.matchAll(/Name: (\S+)\s+Flags: /g)].map(
    (match) => match[1] as string,
  );
  return { libraries, versions };
}

/** Libraries of glibc. Newer versions have them in one file. */
const OF_THE_C_LIBRARY = [
  'libc.so.6',
  'libm.so.6',
  'libdl.so.2',
  'libpthread.so.0',
  'librt.so.1',
  'ld-linux-x86-64.so.2',
];

/**
 * Reasons why a system with only this glibc cannot load the file. Empty: it can.
 */
export function reasonsAgainst(
  { libraries, versions }: Needs,
  glibc: readonly [number, number],
): string[] {
  const foreign = libraries
    .filter((library) => !OF_THE_C_LIBRARY.includes(library))
    .map((library) => `it needs ${library}`);
  return [
    ...foreign,
    ...versions
      .filter((version) => !isWithin(version, glibc))
      .map((version) => `it needs ${version}`),
  ];
}

function isWithin(version: string, [major, minor]: readonly [number, number]): boolean {
  const found = /^GLIBC_(\d+)\.(\d+)/.exec(version);
  if (!found) return false;
  const [foundMajor, foundMinor] = [Number(found[1]), Number(found[2])];
  return foundMajor < major || (foundMajor === major && foundMinor <= minor);
}
