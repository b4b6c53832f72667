import path from 'node:path';
import { type CommandResult, runCommand } from '@nvidia-virtual/toolchain/command';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import type { NodeGpuUsage, PodGpuUsage } from '@nvidia-virtual/usage-api/resources';
import { REPOSITORY } from '../../paths.js';
import { pause } from '../../processes.js';
import type { Cluster } from '../cluster/cluster.js';
import { SLOTS } from './product.js';

const PLUGIN = path.join(REPOSITORY, 'build', 'kubectl-plugin');
const PATIENCE_MS = 40_000;

let made: Promise<void> | undefined;

/** `kubectl gpu-usage`, made when it is first asked for; kubectl finds its plugins in PATH. */
export async function gpuUsage(
  cluster: Cluster,
  args: readonly string[],
  kubeconfig = cluster.plane.adminKubeconfig,
): Promise<CommandResult> {
  made ??= makePlugin();
  await made;
  const env = { ...process.env, KUBECONFIG: kubeconfig, PATH: `${PLUGIN}:${process.env['PATH']}` };
  return runCommand(kubernetesTool('kubectl'), ['gpu-usage', ...args], { env });
}

async function makePlugin(): Promise<void> {
  const { status, output } = await runCommand(process.execPath, [path.join(REPOSITORY, 'toolchain', 'dist', 'kubectl-plugin.js')]);
  if (status !== 0) throw new Error(`the plugin of kubectl could not be made:\n${output}`);
}

/**
 * Waits until `kubectl gpu-usage` shows exactly these pods of the namespace at work, with the memory that each has, and what is free beside them.
 * @param slots of each pod, by its name
 * @returns how it is instead
 */
export async function usageProblems(cluster: Cluster, namespace: string, slots: Readonly<Record<string, number>>): Promise<string[]> {
  const end = performance.now() + PATIENCE_MS;
  const free = SLOTS - Object.values(slots).reduce((sum, count) => sum + count, 0);
  for (;;) {
    const shown = await gpuUsage(cluster, ['-n', namespace, '-o', 'json']);
    const nodes = await gpuUsage(cluster, ['nodes', '-o', 'json']);
    const whole = [shown, nodes].every(({ status, output }) => status === 0 && output.startsWith('{')); // else it begins with a warning
    if (whole && areAtWork(shown.output, slots) && freeSlots(nodes.output) === free) return [];
    if (performance.now() > end) return [`kubectl gpu-usage shows ${shown.output}\n${nodes.output}`];
    await pause(500);
  }
}

function areAtWork(output: string, slots: Readonly<Record<string, number>>): boolean {
  const { items } = JSON.parse(output) as { items: readonly PodGpuUsage[] };
  const right = ({ metadata, state, slots: count, message, containers }: PodGpuUsage) =>
    state === 'Active' &&
    count === slots[metadata.name] &&
    message === undefined &&
    containers.every(({ memory }) => memory.used !== undefined);
  return items.length === Object.keys(slots).length && items.every(right);
}

function freeSlots(output: string): number {
  const { items } = JSON.parse(output) as { items: readonly NodeGpuUsage[] };
  return items.reduce((sum, { slots }) => sum + slots.free, 0);
}
