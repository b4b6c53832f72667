import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import {
  makeDirectoryAtomically,
  readIfThere,
  syncToDisk,
  writeFileAtomically,
} from '@nvidia-virtual/service/files';
import { allocationsIn, clientDirectoryIn } from './paths.js';

/** File in the directory of a grant. It stays when the grant becomes an allocation. */
export const GRANT = 'grant.json';

/** Content of grant.json: what the kubelet granted to a container that is not known yet. */
export interface Grant {
  readonly version: 1;
  /**
   * Id of the allocation that it becomes when the first program connects: 16 random lowercase
   * hexadecimal digits.
   */
  readonly id: string;
  /** Device ids of the kubelet. */
  readonly slots: readonly string[];
  readonly createdAt: string;
  /** Version of the library in the container. It is kept as long as the grant exists. */
  readonly build?: string;
}

/**
 * Creates the directory of a grant atomically. It does not need gpu-proxy, which may be down. It
 * is durable like the kubelet's record of the answer: after a crash of the machine, containers get
 * the same directory again.
 * @returns the grant, and the directory for the container, in which gpu-proxy will serve the
 * socket
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
  const allocations = allocationsIn(stateDirectory);
  const directory = path.join(allocations, grant.id);
  mkdirSync(allocations, { recursive: true, mode: 0o711 });
  makeDirectoryAtomically(directory, 0o711, (unfinished) => {
    writeFileAtomically(path.join(unfinished, GRANT), JSON.stringify(grant), { durable: true });
    mkdirSync(clientDirectoryIn(unfinished), { mode: 0o755 });
    syncToDisk(unfinished);
  });
  syncToDisk(allocations);
  syncToDisk(stateDirectory);
  return { grant, clientDirectory: clientDirectoryIn(directory) };
}

/** The grant in a directory. Undefined if there is none, or this version cannot read it. */
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
