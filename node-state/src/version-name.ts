import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

/** Paths of the files of a build, relative to its directory. */
export function filesOfBuild(directory: string): string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => path.join(parentPath, name));
  return files.map((file) => path.relative(directory, file)).sort();
}

/** Name of a build: 16 hexadecimal digits of a hash of its content. */
export function versionName(directory: string, files = filesOfBuild(directory)): string {
  const hash = createHash('sha256');
  for (const file of files) {
    const source = path.join(directory, file);
    const content = readFileSync(source);
    hash.update(`${file}\0${statSync(source).mode & 0o111}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex').slice(0, 16);
}
