import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { mustRun } from '../command.js';
import { readNeeds } from '../elf.js';
import { ToolchainError } from '../errors.js';
import { type DebianRoot, debianArchive } from './debian-root.js';

/** Version 4.1, which knows new kernels, is in Debian 13. */
const ROOT: DebianRoot = {
  ...{ suite: 'trixie', name: 'debian-trixie-criu-1' },
  packages: ['criu'],
};
const PROGRAM = 'usr/sbin/criu';
const LIBRARIES = 'usr/lib/x86_64-linux-gnu';
const LICENCES = 'usr/share/doc';
/** Lists of the files of packages: `PACKAGE.list` or `PACKAGE:ARCHITECTURE.list`. */
const LISTS = 'var/lib/dpkg/info';
const STATUS = 'var/lib/dpkg/status';
/** Release of the packages. */
export const CRIU_RELEASE = ROOT.suite;
/** File in the directory: dpkg's entries of the packages, for the SBOM. */
export const CRIU_PACKAGES = 'packages';

/**
 * Copies Debian's CRIU, the libraries and the loader that it needs, and their licences. A worker
 * sees no other files, so all are in one directory.
 */
export async function copyCriu(directory: string): Promise<void> {
  const root = `${directory}.root`;
  rmSync(root, { recursive: true, force: true });
  mkdirSync(root, { recursive: true });
  mkdirSync(directory, { recursive: true });
  try {
    await extract(root);
    copyFileSync(path.join(root, PROGRAM), path.join(directory, 'criu'));
    const libraries = await librariesOf(root, path.join(root, PROGRAM));
    for (const library of libraries)
      copyFileSync(path.join(root, LIBRARIES, library), path.join(directory, library));
    const files = [PROGRAM, ...[...libraries].map((each) => `${LIBRARIES}/${each}`)];
    const packages = packagesOf(root, files);
    copyLicences(root, packages, directory);
    writeFileSync(path.join(directory, CRIU_PACKAGES), statusOf(root, packages));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function packagesOf(root: string, files: readonly string[]): string[] {
  const lists = readdirSync(path.join(root, LISTS)).filter((each) => each.endsWith('.list'));
  const owners = lists.filter((list) => {
    const has = readFileSync(path.join(root, LISTS, list), 'utf8').split('\n');
    return files.some((file) => has.includes(`/${file}`));
  });
  return owners.map((list) => list.replace(/(:\w+)?\.list$/, ''));
}

function copyLicences(root: string, packages: readonly string[], directory: string): void {
  for (const name of packages)
    copyFileSync(
      path.join(root, LICENCES, name, 'copyright'),
      path.join(directory, `LICENSE.${name}`),
    );
}

function statusOf(root: string, packages: readonly string[]): string {
  const paragraphs = readFileSync(path.join(root, STATUS), 'utf8').split('\n\n');
  const nameOf = (paragraph: string) => /^Package: (.*)$/m.exec(paragraph)?.[1] ?? '';
  return paragraphs.filter((each) => packages.includes(nameOf(each))).join('\n\n');
}

async function extract(root: string): Promise<void> {
  const archive = await debianArchive(ROOT);
  const wanted = [PROGRAM, LIBRARIES, LICENCES, LISTS, STATUS].map((each) => `./${each}`);
  const failure = `CRIU is not in ${archive}`;
  await mustRun('tar', ['-xf', archive, '-C', root, ...wanted], { failure });
}

/** The libraries that a program needs, directly and indirectly. */
async function librariesOf(root: string, program: string): Promise<Set<string>> {
  const found = new Set<string>();
  for (const waiting = [program]; waiting.length > 0; ) {
    const { libraries } = await readNeeds(waiting.pop() as string);
    for (const library of libraries.filter((each) => !found.has(each))) {
      const file = path.join(root, LIBRARIES, library);
      if (!existsSync(file)) throw new ToolchainError(`CRIU needs ${library}, which is missing`);
      found.add(library);
      waiting.push(file);
    }
  }
  return found;
}
