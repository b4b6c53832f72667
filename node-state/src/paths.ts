import path from 'node:path';

export const DEFAULT_STATE = '/run/nvidia-virtual';
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
