import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs';

/** The kernel's number of the cgroup that each page is charged to. */
const PAYERS = '/proc/kpagecgroup';
const PAGE = 4096;
const PRESENT = 1n << 63n;
const FRAME = (1n << 55n) - 1n;
const NODE = ['/sys/fs/cgroup/memory/nvidia-virtual', '/sys/fs/cgroup/nvidia-virtual'];

/** Whether this process may read that. */
export const canReadPayers = process.getuid?.() === 0 && existsSync(PAYERS);

/** Numbers of the cgroups that pay for the arenas which a process has mapped. */
export function arenaPayers(pid: number): Set<bigint> {
  const maps = readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n');
  const frames = maps
    .filter((line) => line.includes('memfd:nvidia-virtual-arena'))
    .flatMap((line) => {
      const [from = 0, to = 0] = (line.split(' ')[0] ?? '')
        .split('-')
        .map((at) => parseInt(at, 16));
      return words(`/proc/${pid}/pagemap`, from / PAGE, (to - from) / PAGE);
    })
    .filter((entry) => (entry & PRESENT) !== 0n)
    .map((entry) => Number(entry & FRAME));
  return new Set(frames.flatMap((frame) => words(PAYERS, frame, 1)));
}

/** The number of the node's cgroup. */
export function nodePayer(): bigint {
  const cgroup = NODE.find((directory) => existsSync(directory)) ?? '';
  return statSync(cgroup, { bigint: true }).ino;
}

/** Words of 64 bits from this index on. */
function words(file: string, index: number, count: number): bigint[] {
  const bytes = Buffer.alloc(8 * count);
  const fd = openSync(file, 'r');
  readSync(fd, bytes, 0, bytes.length, 8 * index);
  closeSync(fd);
  return Array.from({ length: count }, (_, at) => bytes.readBigUInt64LE(8 * at));
}
