import { cpSync, rmSync } from 'node:fs';
import path from 'node:path';
import { type CommandResult, runCommand } from '@nvidia-virtual/toolchain/command';
import type { NodeGpuUsage, PodGpuUsage } from '@nvidia-virtual/usage-api/resources';
import { REPOSITORY } from '../../paths.js';
import { lookUntil } from '../../processes.js';
import type { Cluster } from '../cluster/cluster.js';
import { SLOTS } from './product.js';

const BUILT = path.join(REPOSITORY, 'build', 'kubectl-plugin');
/** A copy, because a release and the commands of a page build the plugin again. */
const PLUGIN = path.join(REPOSITORY, 'build', 'kubernetes', 'kubectl-plugin');

let made: Promise<void> | undefined;

/** Builds the plugin once. */
export function makeGpuUsage(): Promise<void> {
  made ??= makePlugin();
  return made;
}

/** `kubectl gpu-usage`; kubectl finds its plugins in PATH. */
export async function gpuUsage(
  cluster: Cluster,
  args: readonly string[],
  kubeconfig = cluster.kubeconfig,
): Promise<CommandResult> {
  await makeGpuUsage();
  const env = { ...process.env, KUBECONFIG: kubeconfig, PATH: `${PLUGIN}:${process.env['PATH']}` };
  return runCommand(cluster.kubectlProgram, ['gpu-usage', ...args], { env });
}

/** Its output, parsed if it is JSON. */
export async function gpuUsageJson<T>(
  cluster: Cluster,
  args: readonly string[],
): Promise<{ readonly value?: T; readonly output: string }> {
  const { status, output } = await gpuUsage(cluster, [...args, '-o', 'json']);
  const whole = status === 0 && output.startsWith('{'); // another output begins with a warning
  return { output, ...(whole && { value: JSON.parse(output) as T }) };
}

async function makePlugin(): Promise<void> {
  const { status, output } = await runCommand(process.execPath, [
    path.join(REPOSITORY, 'toolchain', 'dist', 'kubectl-plugin.js'),
  ]);
  if (status !== 0) throw new Error(`the plugin of kubectl could not be made:\n${output}`);
  rmSync(PLUGIN, { recursive: true, force: true });
  cpSync(BUILT, PLUGIN, { recursive: true, verbatimSymlinks: true });
}

/**
 * Waits until `kubectl gpu-usage` shows exactly these pods of the namespace at work, each with its
 * memory, the waiting pods, and the free slots.
 * @param slots of each pod at work, by its name
 * @param waiting names of the waiting pods
 * @returns the differences
 */
export async function usageProblems(
  cluster: Cluster,
  namespace: string,
  slots: Readonly<Record<string, number>>,
  waiting: readonly string[] = [],
): Promise<string[]> {
  const free = SLOTS - Object.values(slots).reduce((sum, count) => sum + count, 0);
  const look = async () => {
    const [pods, nodes] = await Promise.all([
      gpuUsageJson<{ items: readonly PodGpuUsage[] }>(cluster, ['-n', namespace]),
      gpuUsageJson<{ items: readonly NodeGpuUsage[] }>(cluster, ['nodes']),
    ]);
    const waits = pods.value?.items
      .filter(({ state }) => state === 'Waiting')
      .map(({ metadata }) => metadata.name);
    const rest = pods.value?.items.filter(({ state }) => state !== 'Waiting') ?? [];
    const right =
      `${waits?.sort()}` === `${[...waiting].sort()}` &&
      areAtWork(rest, slots) &&
      freeSlots(nodes.value?.items) === free;
    return right ? [] : [`kubectl gpu-usage shows ${pods.output}\n${nodes.output}`];
  };
  return lookUntil(look, (problems) => problems.length === 0, { everyMs: 500 });
}

function areAtWork(pods: readonly PodGpuUsage[], slots: Readonly<Record<string, number>>): boolean {
  const right = ({ metadata, state, slots: count, message, containers }: PodGpuUsage) =>
    state === 'Active' &&
    count === slots[metadata.name] &&
    message === undefined &&
    containers.every(({ memory }) => memory.used !== undefined);
  return pods.length === Object.keys(slots).length && pods.every(right);
}

function freeSlots(nodes: readonly NodeGpuUsage[] | undefined): number | undefined {
  return nodes?.reduce((sum, { slots }) => sum + slots.free, 0);
}
