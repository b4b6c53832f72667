import { runCommand } from './command.js';
import { ToolchainError } from './errors.js';

/** What a file needs to be loaded. */
interface Needs {
  /** `libc.so.6` */
  readonly libraries: readonly string[];
  /** `GLIBC_2.17`, of the symbols that it does not define. */
  readonly versions: readonly string[];
}

/** As its dynamic section and its version needs say. */
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

/** Those that come with every glibc, in one file or in several. */
const OF_THE_C_LIBRARY = [
  'libc.so.6',
  'libm.so.6',
  'libdl.so.2',
  'libpthread.so.0',
  'librt.so.1',
  'ld-linux-x86-64.so.2',
];

/**
 * Whether a system with this glibc and nothing else can load it: a sentence for each reason why
 * not.
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
