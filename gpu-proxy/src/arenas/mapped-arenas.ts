import { readFileSync } from 'node:fs';

const MAPPING =
  /^([0-9a-f]+-[0-9a-f]+) \S+ \S+ \S+ (\d+) +\/memfd:nvidia-virtual-arena \(deleted\)$/gm;

/**
 * The arenas that a process has mapped: paths that lead to them, by inode. Empty if it has ended.
 */
export function mappedArenas(pid: number): Map<number, string> {
  try {
    const mappings = [...readFileSync(`/proc/${pid}/maps`, 'utf8').matchAll(MAPPING)];
    return new Map(
      mappings.map(([, range, inode]) => [Number(inode), `/proc/${pid}/map_files/${range}`]),
    );
  } catch {
    return new Map();
  }
}
