import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '../command.js';
import { ToolchainError } from '../errors.js';
import { buildDirectory, REPOSITORY } from '../repository.js';
import type { Rule } from './rule.js';

const BUILD = buildDirectory('release');
const LIBRARIES = {
  'libcuda.so.1': path.join(BUILD, 'generated', 'exports.map'),
  'libnvidia-ml.so.1': path.join(REPOSITORY, 'nvml', 'exports.map'),
};
/** Both are loaded into user processes, so they may depend only on libc and the loader. */
const ALLOWED_LIBRARIES = ['libc.so.6', 'ld-linux-x86-64.so.2'];

export const exportedSymbols: Rule = {
  law: 'libcuda.so.1 and libnvidia-ml.so.1 export exactly the functions of their lists',
  check: () =>
    forEachLibrary(async (library, map) =>
      compareExports(
        readExportsMap(readFileSync(built(map), 'utf8')),
        await definedSymbols(built(library)),
      ),
    ),
};

export const neededLibraries: Rule = {
  law: 'libcuda.so.1 and libnvidia-ml.so.1 depend only on libc',
  check: () =>
    forEachLibrary(async (library) => {
      const { output } = await runCommand('readelf', ['-d', built(library)]);
      return findForbiddenLibraries(output);
    }),
};

async function forEachLibrary(
  check: (library: string, exportsMap: string) => Promise<string[]>,
): Promise<string[]> {
  const found: string[] = [];
  for (const [name, map] of Object.entries(LIBRARIES)) {
    const problems = await check(path.join(BUILD, 'interposer', name), map);
    found.push(...problems.map((problem) => `${name}: ${problem}`));
  }
  return found;
}

export function readExportsMap(text: string): string[] {
  const globals = /global:([^}]*?)(?:local:|})/s.exec(text)?.[1] ?? '';
  return [...globals.matchAll(/(\w+);/g)].map((match) => match[1] as string);
}

export function compareExports(
  specified: readonly string[],
  exported: readonly string[],
): string[] {
  if (specified.length === 0) return ['exports.map names no function at all.'];
  const missing = specified.filter((name) => !exported.includes(name));
  const extra = exported.filter((name) => !specified.includes(name));
  return [
    ...missing.map((name) => `${name} is specified but not exported.`),
    ...extra.map((name) => `${name} is exported but not specified: give it hidden visibility.`),
  ];
}

export function findForbiddenLibraries(dynamicSection: string): string[] {
  const needed = [...dynamicSection.matchAll(/\(NEEDED\).*\[(.+)\]/g)].map(
    (match) => match[1] as string,
  );
  const forbidden = needed.filter((library) => !ALLOWED_LIBRARIES.includes(library));
  return forbidden.map((library) => `it needs ${library}, which a container may lack.`);
}

async function definedSymbols(library: string): Promise<string[]> {
  const { output } = await runCommand('nm', ['-D', '--defined-only', '--format=posix', library]);
  // A versioned symbol is written name@@version. The version itself is an absolute symbol (A).
  const symbols = [...output.matchAll(/^(\w+)(?:@\S+)? (\w)/gm)];
  return symbols.filter((match) => match[2] !== 'A').map((match) => match[1] as string);
}

function built(file: string): string {
  if (!existsSync(file))
    throw new ToolchainError(`${file} does not exist: run \`npm run build\` first.`);
  return file;
}
