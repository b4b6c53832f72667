import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { GRANT, readGrant } from '@nvidia-virtual/gpu-proxy/grant';

/**
 * The versions whose library some container has. Undefined when one of them cannot be told: then it may be any. An allocation without a grant
 * was made by a person on the node: its programs bring the library along.
 */
export function versionsInUse(state: string): ReadonlySet<string> | undefined {
  const allocations = path.join(state, 'allocations');
  const directories = readdirSync(allocations).map((id) => path.join(allocations, id));
  const builds = directories.filter((directory) => existsSync(path.join(directory, GRANT))).map((directory) => readGrant(directory)?.build);
  return builds.includes(undefined) ? undefined : new Set(builds as string[]);
}
