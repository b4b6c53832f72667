import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import {
  makeDirectoryAtomically,
  readIfThere,
  syncToDisk,
  writeFileAtomically,
} from '@nvidia-virtual/service/files';

/** In the directory of an allocation to be, and of one that was made of it. */
export const GRANT = 'grant.json';

/** What the kubelet granted to a container, before anybody knows to which: grant.json. */
export interface Grant {
  readonly version: 1;
  /**
   * Of the allocation that it becomes when the first program connects: 16 lowercase hexadecimal
   * digits, random.
   */
  readonly id: string;
  /** Device ids of the kubelet. */
  readonly slots: readonly string[];
  readonly createdAt: string;
  /** The version whose library the container got; it stays for as long as the grant does. */
  readonly build?: string;
}

/**
 * Prepares a directory in the state directory, whole or not at all, in one step and without asking
 * anybody: gpu-proxy may be away just then. It is on disk for good, since the kubelet's answer is:
 * containers that start after a crash of the machine get the same directory again.
 * @returns the grant, and the directory that the container gets, in which gpu-proxy will serve the
 * socket.
 */
export function prepareGrant(
  stateDirectory: string,
  slots: readonly string[],
  build?: string,
): { grant: Grant; clientDirectory: string } {
  const id = randomBytes(8).toString('hex');
  const grant: Grant = {
    version: 1,
    id,
    slots,
    createdAt: new Date().toISOString(),
    ...(build !== undefined && { build }),
  };
  const directory = path.join(stateDirectory, 'allocations', grant.id);
  const allocations = path.dirname(directory);
  mkdirSync(allocations, { recursive: true, mode: 0o711 });
  makeDirectoryAtomically(directory, 0o711, (unfinished) => {
    writeFileAtomically(path.join(unfinished, GRANT), JSON.stringify(grant), { durable: true });
    mkdirSync(path.join(unfinished, 'client'), { mode: 0o755 });
    syncToDisk(unfinished);
  });
  syncToDisk(allocations);
  syncToDisk(stateDirectory);
  return { grant, clientDirectory: path.join(directory, 'client') };
}

/** The grant in a directory; undefined when there is none, or none that this version can read. */
export function readGrant(directory: string): Grant | undefined {
  const text = readIfThere(path.join(directory, GRANT));
  const grant = text === undefined ? undefined : parseGrant(text);
  return grant?.version === 1 && Array.isArray(grant.slots) && grant.id === path.basename(directory)
    ? grant
    : undefined;
}

function parseGrant(text: string): Grant | undefined {
  try {
    return JSON.parse(text) as Grant;
  } catch {
    return undefined;
  }
}
