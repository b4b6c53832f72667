import { lstatSync, readlinkSync } from 'node:fs';
import path from 'node:path';

/** The kernel's limit on links in a path. */
const MOST_LINKS = 40;

/**
 * Resolves the links of a path under another root directory. The kernel would follow absolute links
 * from the root of this process.
 * @param root path of that directory in this process
 * @returns a path without links under `root`; undefined if there is no such file
 */
export function resolveUnder(root: string, file: string): string | undefined {
  const left = path.resolve(file).split('/');
  let found = '/';
  for (let links = 0; left.length > 0; ) {
    const next = path.resolve(found, left.shift() as string);
    const seen = path.join(root, next);
    const entry = lstatSync(seen, { throwIfNoEntry: false });
    if (entry === undefined) return undefined;
    if (entry.isSymbolicLink()) {
      if (++links > MOST_LINKS) return undefined;
      const target = readlinkSync(seen);
      if (path.isAbsolute(target)) found = '/';
      left.unshift(...target.split('/'));
    } else {
      found = next;
    }
  }
  return found;
}
