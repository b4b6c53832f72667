import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';

/**
 * Directory of all files on a node. It is not under /run, which a boot clears: after a boot the
 * kubelet mounts the directories of grants again.
 */
export const NODE_DIRECTORY = '/var/lib/nvidia-virtual';
export const DEFAULT_STATE = path.join(NODE_DIRECTORY, 'state');
/** Installed builds, one subdirectory each. */
export const DEFAULT_VERSIONS = path.join(NODE_DIRECTORY, 'versions');
/** File in the directory of an allocation. Without it, the directory is no allocation. */
export const SPECIFICATION = 'allocation.json';
/** File in the directory of an allocation: the process that it ends with. */
export const HOLDER = 'holder.json';
/** Subdirectory of an allocation, with one directory per session. */
export const SESSIONS = 'sessions';
/** File in the directory of a session: its record. */
export const SESSION_RECORD = 'session.json';

export function adminSocketIn(state: string): string {
  return path.join(path.resolve(state), 'admin.sock');
}

/** Directory of all allocations and grants, one subdirectory each. */
export function allocationsIn(state: string): string {
  return path.join(state, 'allocations');
}

/** The directory of an allocation or grant that its container sees. */
export function clientDirectoryIn(allocation: string): string {
  return path.join(allocation, 'client');
}

/** The socket for the programs of the container. */
export function clientSocketIn(allocation: string): string {
  return path.join(clientDirectoryIn(allocation), 'gpu.sock');
}

/** The copy of the host's nvidia-smi for containers. */
export function nvidiaSmiIn(state: string): string {
  return path.join(path.resolve(state), 'nvidia-smi');
}

/**
 * In its own directory, because workers see only that and their allocation of the state directory.
 */
export function arbiterSocketIn(state: string): string {
  return path.join(path.resolve(state), 'arbiter', 'arbiter.sock');
}

/** The directories of the sessions of an allocation. None in a grant. */
export function sessionDirectories(allocation: string): string[] {
  const sessions = path.join(allocation, SESSIONS);
  return existsSync(sessions) ? readdirSync(sessions).map((name) => path.join(sessions, name)) : [];
}
