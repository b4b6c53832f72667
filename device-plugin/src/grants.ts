import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { GRANT, readGrant } from '@nvidia-virtual/gpu-proxy/grant';
import { readSpecification } from '@nvidia-virtual/gpu-proxy/specification';
import type { SlotUser } from './slots.js';

/**
 * The versions whose library some container has. Undefined when one of them cannot be told: then it may be any. An allocation without a grant
 * was made by a person on the node: its programs bring the library along.
 */
export function versionsInUse(state: string): ReadonlySet<string> | undefined {
  const builds = grantDirectories(state).map((directory) => readGrant(directory)?.build);
  return builds.includes(undefined) ? undefined : new Set(builds as string[]);
}

/** Who has slots. Grants and allocations go when their pods are gone, so that is what lies in the state directory. */
export function slotUsers(state: string): SlotUser[] {
  return grantDirectories(state).map((directory) => ({ slots: readGrant(directory)?.slots ?? [], gpus: gpusOf(directory) }));
}

function grantDirectories(state: string): string[] {
  const allocations = path.join(state, 'allocations');
  const directories = readdirSync(allocations).map((id) => path.join(allocations, id));
  return directories.filter((directory) => existsSync(path.join(directory, GRANT)));
}

/** None before the first program of the container has connected. */
function gpusOf(directory: string): readonly string[] {
  try {
    return readSpecification(path.join(directory, 'allocation.json')).gpus;
  } catch {
    return [];
  }
}
