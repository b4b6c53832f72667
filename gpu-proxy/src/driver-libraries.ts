import { lstatSync, mkdirSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import type { Backend } from './backend.js';

/** Where a host's loader looks without being told. */
const LOADER_DIRECTORIES = ['/usr/lib/x86_64-linux-gnu', '/lib/x86_64-linux-gnu', '/usr/lib64', '/lib64', '/usr/lib', '/lib'];

/** What the driver itself loads by name, and the MPS server loads of the driver. */
const PART = /^lib(cuda|cudadebugger|nvidia-[\w-]+)\.so(\.|$)/;

/**
 * A directory of links to the parts of a driver that lies where the host's loader would not find them. The driver's own directory must not be
 * searched in its place: in a driver container it is that of a whole distribution, whose libc.so.6 would be loaded into programs of this one.
 * Workers that run may look into it at any time, so that it is changed link by link.
 * @param directory where it is made
 * @param root where the host's files are seen
 * @returns undefined when there is nothing to be told.
 */
export function linkDriver({ kind, driver }: Backend, directory: string, root: string): string | undefined {
  const home = path.dirname(driver);
  if (kind !== 'real' || LOADER_DIRECTORIES.includes(home)) return undefined;
  const names = readdirSync(path.join(root, home)).filter((name) => PART.test(name));
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  for (const name of readdirSync(directory)) if (!names.includes(name)) rmSync(path.join(directory, name));
  for (const name of names) putLink(path.join(home, name), path.join(directory, name));
  return directory;
}

function putLink(target: string, link: string): void {
  if (lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink() && readlinkSync(link) === target) return;
  const unfinished = path.join(path.dirname(link), `.new-${path.basename(link)}`);
  rmSync(unfinished, { force: true });
  symlinkSync(target, unfinished);
  renameSync(unfinished, link);
}
