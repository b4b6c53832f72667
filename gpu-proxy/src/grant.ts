import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { makeDirectoryAtomically, writeFileAtomically } from './files.js';

/** What the kubelet granted to a container, before anybody knows to which: grant.json in the directory of an allocation to be. */
export interface Grant {
  readonly version: 1;
  /** Of the allocation that it becomes when the first program connects: 16 lowercase hexadecimal digits, random. */
  readonly id: string;
  /** Device ids of the kubelet. */
  readonly slots: readonly string[];
  readonly createdAt: string;
}

/**
 * Prepares a directory in the state directory, whole or not at all, in one step and without asking anybody: gpu-proxy may be away just then.
 * @returns the grant, and the directory that the container gets, in which gpu-proxy will serve the socket.
 */
export function prepareGrant(stateDirectory: string, slots: readonly string[]): { grant: Grant; clientDirectory: string } {
  const grant: Grant = { version: 1, id: randomBytes(8).toString('hex'), slots, createdAt: new Date().toISOString() };
  const directory = path.join(stateDirectory, 'allocations', grant.id);
  makeDirectoryAtomically(directory, 0o711, (unfinished) => {
    writeFileAtomically(path.join(unfinished, 'grant.json'), JSON.stringify(grant));
    mkdirSync(path.join(unfinished, 'client'), { mode: 0o755 });
  });
  return { grant, clientDirectory: path.join(directory, 'client') };
}
