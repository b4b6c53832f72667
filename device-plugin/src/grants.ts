import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { GRANT, readGrant } from '@nvidia-virtual/node-state/grant';
import { allocationsIn, SPECIFICATION } from '@nvidia-virtual/node-state/paths';
import { readSpecification } from '@nvidia-virtual/node-state/specification';
import type { SlotUser } from './slots.js';

/**
 * The versions whose library is in use by containers. Undefined if the version of a grant is
 * unknown: it can be any. Allocations without a grant were created by an operator; their programs
 * bring their own library.
 */
export function versionsInUse(state: string): ReadonlySet<string> | undefined {
  const builds = grantDirectories(state).map((directory) => readGrant(directory)?.build);
  return builds.includes(undefined) ? undefined : new Set(builds as string[]);
}

/**
 * The slots in use, read from the state directory: grants and allocations are removed with their
 * pods.
 */
export function slotUsers(state: string): SlotUser[] {
  return grantDirectories(state).map((directory) => ({
    slots: readGrant(directory)?.slots ?? [],
    gpus: gpusOf(directory),
  }));
}

function grantDirectories(state: string): string[] {
  const allocations = allocationsIn(state);
  const directories = readdirSync(allocations).map((id) => path.join(allocations, id));
  return directories.filter((directory) => existsSync(path.join(directory, GRANT)));
}

/** Empty before the first program of the container has connected. */
function gpusOf(directory: string): readonly string[] {
  try {
    return readSpecification(path.join(directory, SPECIFICATION)).gpus;
  } catch {
    return [];
  }
}
