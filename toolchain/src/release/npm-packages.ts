import { readFileSync } from 'node:fs';
import path from 'node:path';
import { bundledDirectories } from '../images/bundle.js';
import { REPOSITORY } from '../repository.js';

export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** SPDX expression, or another text of its author. */
  readonly license?: string;
  /** Digest of its archive in the registry: `sha512-BASE64`. */
  readonly integrity?: string;
}

/** npm packages whose code is in the bundles of these workspaces, as package-lock.json has them. */
export async function npmPackages(workspaces: readonly string[]): Promise<NpmPackage[]> {
  const lock = JSON.parse(readFileSync(path.join(REPOSITORY, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Omit<NpmPackage, 'name'>>;
  };
  const modules = workspaces.map((name) => `${name}/dist/main.js`);
  const directories = (await Promise.all(modules.map(bundledDirectories))).flat().sort();
  const packages = directories.map((directory) => ({
    ...(lock.packages[directory] as Omit<NpmPackage, 'name'>),
    name: directory.replace(/^.*node_modules\//, ''),
  }));
  // The same version may be in several directories.
  return [...new Map(packages.map((one) => [`${one.name}@${one.version}`, one])).values()];
}
