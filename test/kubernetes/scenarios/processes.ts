import { readFileSync } from 'node:fs';
import { namesIn } from '@nvidia-virtual/service/files';
import { lookUntil, processesMapping, processesWith, workersWhere } from '../../processes.js';
import { STATE_ROOT } from '../cluster/places.js';
import { TestNode } from '../cluster/test-node.js';
import type { Scene } from './scene.js';

/** Processes of the product on the node, by a part of their command line. */
const PARTS = {
  'device plugin': 'nvidia-virtual-device-plugin\0',
  'gpu-proxy': '/gpu-proxy\0serve',
  arbiter: '/nvidia-virtual-arbiter\0',
  redis: 'valkey-server',
  scheduler: '--config=/etc/kubernetes/scheduler/configuration.yaml',
  extender: 'nvidia-virtual-scheduler-ext\0extender',
  webhook: 'nvidia-virtual-scheduler-ext\0webhook',
  'usage API': 'nvidia-virtual-usage-api\0',
} as const;
export type Part = keyof typeof PARTS;

/** Polling by scans of /proc, which take milliseconds of a processor that others need. */
export const SCAN = { everyMs: 50 };

function processesOf(part: Part): number[] {
  return processesWith(PARTS[part]).filter(isOfNode);
}

/**
 * In a container of a pod, or started from the product's directory, unlike other processes of the
 * same name.
 */
function isOfNode(pid: number): boolean {
  return (
    readOf(pid, 'cgroup').includes('/kubepods/') ||
    readOf(pid, 'cmdline').startsWith(`${STATE_ROOT}/versions/`)
  );
}

/** kill -9. Resolves when another process has replaced it; its supervisor decides which. */
export async function killPart(part: Part): Promise<void> {
  const killed = processesOf(part);
  if (killed.length === 0) throw new Error(`there is no process of ${part}`);
  for (const pid of killed) process.kill(pid, 'SIGKILL');
  const replace = (pids: readonly number[]) =>
    pids.filter((pid) => !killed.includes(pid)).length >= killed.length;
  const found = await lookUntil(() => processesOf(part), replace, SCAN);
  if (!replace(found)) throw new Error(`${part} was killed and did not come back`);
}

/** The workers on this node: they run from the directory of a version. */
export function workers(): number[] {
  return workersWhere(isOfNode);
}

/** Processes of the product that have mapped a simulated driver, for CUDA or for NVML. */
export function driverUsers(): number[] {
  return processesMapping('/libsimulator-').filter(isOfNode);
}

/** Processes of the product that have mapped host memory for GPU memory that left. */
export function arenaHolders(): number[] {
  return processesMapping('/memfd:nvidia-virtual-arena').filter(isOfNode);
}

/**
 * Workers and allocation directories that a node without GPU pods should not have. Only checked if
 * this machine is the node.
 */
export async function judgeLeavings({
  cluster,
  tally,
}: Pick<Scene, 'cluster' | 'tally'>): Promise<void> {
  if (cluster instanceof TestNode) tally.judge('and nothing is left', await leavings());
  else tally.skip('nothing is left', 'the node is another machine');
}

async function leavings(): Promise<string[]> {
  const left = () => [
    ...workers().map((pid) => `worker ${pid}: ${readOf(pid, 'cmdline').replaceAll('\0', ' ')}`),
    ...allocations().map((id) => `allocation ${id}`),
  ];
  const found = await lookUntil(left, (all) => all.length === 0, SCAN);
  return found.map((one) => `${one} is left behind`);
}

export function allocations(): string[] {
  return namesIn(`${STATE_ROOT}/state/allocations`);
}

function readOf(pid: number, file: 'cgroup' | 'cmdline'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return ''; // it ended meanwhile
  }
}
