import { readFileSync } from 'node:fs';

/** Host memory of the node in bytes, as the kernel reports it. */
export interface NodeMemory {
  readonly total: number;
  /** Memory that new processes can have without swapping. */
  readonly available: number;
}

export function readNodeMemory(): NodeMemory {
  const text = readFileSync('/proc/meminfo', 'utf8');
  const bytes = (name: string) =>
    Number(new RegExp(`^${name}: *(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) * 1024;
  return { total: bytes('MemTotal'), available: bytes('MemAvailable') };
}
