import path from 'node:path';

/**
 * Directory of all our files on a node. It is not under /run, which a boot empties: after a boot
 * the kubelet mounts the directories of grants again.
 */
export const NODE_DIRECTORY = '/var/lib/nvidia-virtual';
export const DEFAULT_STATE = path.join(NODE_DIRECTORY, 'state');
/** Installed builds, one subdirectory each. */
export const DEFAULT_VERSIONS = path.join(NODE_DIRECTORY, 'versions');
/** In the directory of an allocation: without it, there is none yet, or none any more. */
export const SPECIFICATION = 'allocation.json';

export function adminSocketIn(state: string): string {
  return path.join(path.resolve(state), 'admin.sock');
}

/**
 * In a directory of its own, which is all that workers see of the state directory beside their
 * allocation.
 */
export function arbiterSocketIn(state: string): string {
  return path.join(path.resolve(state), 'arbiter', 'arbiter.sock');
}
