import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fetchPythonPackages, fetchPythonSource } from '@nvidia-virtual/toolchain/python-packages';
import { cacheDirectory } from '@nvidia-virtual/toolchain/repository';
import type { Suite } from './suites.js';

/** Where the packages and the tests of a suite are. */
export interface Environment {
  readonly packages: string;
  readonly tests: string;
}

/** Fetches both into the cache, once for each set of versions. */
export async function prepare(suite: Suite): Promise<Environment> {
  const packages = cached(`${suite.name}-${digest(suite.packages)}`);
  if (!existsSync(packages)) {
    console.log(`Fetching the packages of ${suite.name} (once) into ${packages}`);
    await fetchPythonPackages(packages, suite.packages);
  }
  if (suite.source === undefined) return { packages, tests: path.join(packages, suite.tests) };
  const source = cached(suite.source.replace('==', '-source-'));
  if (!existsSync(source)) await fetchPythonSource(source, suite.source);
  return { packages, tests: path.join(source, suite.tests) };
}

function cached(name: string): string {
  return path.join(cacheDirectory(), 'suites', name);
}

function digest(packages: readonly string[]): string {
  return createHash('sha256').update(packages.join('\n')).digest('hex').slice(0, 12);
}
