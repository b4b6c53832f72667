import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '../command.js';
import { ToolchainError } from '../errors.js';
import { buildDirectory } from '../repository.js';
import type { Rule } from './rule.js';

const BUILD = buildDirectory('release');
const LIBRARY = path.join(BUILD, 'interposer', 'libcuda.so.1');
const EXPORTS_MAP = path.join(BUILD, 'generated', 'exports.map');
/**
 * The interposer is loaded into user processes, so it may depend only on libc and the loader.
 */
const ALLOWED_LIBRARIES = ['libc.so.6', 'ld-linux-x86-64.so.2'];

export const exportedSymbols: Rule = {
  law: 'libcuda.so.1 exports exactly the functions of the specification',
  check: async () =>
    compareExports(
      readExportsMap(readFileSync(built(EXPORTS_MAP), 'utf8')),
      await definedSymbols(built(LIBRARY)),
    ),
};

export const neededLibraries: Rule = {
  law: 'libcuda.so.1 depends only on libc',
  check: async () => {
    const { output } = await runCommand('readelf', ['-d', built(LIBRARY)]);
    return findForbiddenLibraries(output);
  },
};

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
    ...extra.map((name) => `${name} is exported but not in cuda-api/: give it hidden visibility.`),
  ];
}

export function findForbiddenLibraries(dynamicSection: string): string[] {
  const needed = [...dynamicSection.matchAll(/\(NEEDED\).*\[(.+)\]/g)].map(
    (match) => match[1] as string,
  );
  const forbidden = needed.filter((library) => !ALLOWED_LIBRARIES.includes(library));
  return forbidden.map((library) => `libcuda.so.1 needs ${library}, which a container may lack.`);
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
