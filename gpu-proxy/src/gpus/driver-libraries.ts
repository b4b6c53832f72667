import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import path from 'node:path';
import type { Backend } from './backend.js';

/** Default search directories of the host's loader. */
const LOADER_DIRECTORIES = [
  '/usr/lib/x86_64-linux-gnu',
  '/lib/x86_64-linux-gnu',
  '/usr/lib64',
  '/lib64',
  '/usr/lib',
  '/lib',
];

/** Libraries that the driver loads by name, and libraries of the driver that MPS loads. */
const PART = /^lib(cuda|cudadebugger|nvidia-[\w-]+)\.so(\.|$)/;

/**
 * Creates a directory of links to the driver's libraries, if the host's loader cannot find them.
 * The driver's own directory must not be in the search path: in a driver container it belongs to a
 * complete distribution, whose libc.so.6 would be loaded instead of the host's. Running workers may
 * read the directory at any time, so each link is replaced atomically.
 * @param directory the directory to create
 * @param root path of the host's root directory in this container
 * @returns undefined if the loader finds the libraries
 */
export function linkDriver(
  { kind, driver }: Backend,
  directory: string,
  root: string,
): string | undefined {
  const home = path.dirname(driver);
  if (kind !== 'real' || LOADER_DIRECTORIES.includes(home)) return undefined;
  const names = readdirSync(path.join(root, home)).filter((name) => PART.test(name));
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  for (const name of readdirSync(directory))
    if (!names.includes(name)) rmSync(path.join(directory, name));
  for (const name of names) putLink(path.join(home, name), path.join(directory, name));
  return directory;
}

function putLink(target: string, link: string): void {
  if (lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink() && readlinkSync(link) === target)
    return;
  const unfinished = path.join(path.dirname(link), `.new-${path.basename(link)}`);
  rmSync(unfinished, { force: true });
  symlinkSync(target, unfinished);
  renameSync(unfinished, link);
}
