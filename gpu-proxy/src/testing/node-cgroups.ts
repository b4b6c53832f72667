import { existsSync, rmdirSync } from 'node:fs';
import path from 'node:path';
import { eventually } from '@nvidia-virtual/service/testing/eventually';

/** The hierarchy of cgroup v1 for devices, if this machine has it. */
export const DEVICES = '/sys/fs/cgroup/devices';
/** Names of cgroups that the launcher makes. */
const MADE = ['nvidia-virtual', 'nvidia-virtual-workers', 'nvidia-virtual-services', '.'];

/**
 * Cgroups in which a test plays a node: of version 1, if this machine has it, and 2. Other tests
 * start workers beside it, whose cgroups have other filters.
 * @param unified where cgroup v2 is mounted
 */
export function nodeCgroups(unified: string, name: string): string[] {
  const parents = [...(existsSync(DEVICES) ? [DEVICES] : []), unified];
  return parents.map((parent) => path.join(parent, name));
}

/** Also removes the cgroups that a launcher has made in it. */
export async function removeCgroup(cgroup: string): Promise<void> {
  for (const each of MADE.map((name) => path.join(cgroup, name)))
    await eventually(() => existsSync(each) && rmdirSync(each));
}
