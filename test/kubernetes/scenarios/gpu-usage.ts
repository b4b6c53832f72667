import { cpSync, rmSync } from 'node:fs';
import path from 'node:path';
import { type CommandResult, runCommand } from '@nvidia-virtual/toolchain/command';
import { NODE_USAGE, POD_USAGE } from '@nvidia-virtual/usage-api/definitions';
import {
  API_VERSION,
  type NodeGpuUsage,
  type PodGpuUsage,
} from '@nvidia-virtual/usage-api/resources';
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

/** What one can ask `kubectl gpu-usage`, and the usage API itself. */
interface Question {
  readonly args: readonly string[];
  /** In the usage API. */
  readonly path: string;
}

const NODES: Question = { args: ['nodes'], path: NODE_USAGE.name };

function podsIn(namespace: string): Question {
  return { args: ['-n', namespace], path: `namespaces/${namespace}/${POD_USAGE.name}` };
}

function podIn(namespace: string, name: string): Question {
  const pods = podsIn(namespace);
  return { args: ['pod', name, ...pods.args], path: `${pods.path}/${name}` };
}

/** Whether `kubectl gpu-usage nodes` shows the one node with the free slots that it has. */
export async function nodeProblems(cluster: Cluster): Promise<string[]> {
  const look = async () => {
    const served = await ask<List<NodeGpuUsage>>(cluster, NODES);
    const { output } = await gpuUsage(cluster, [...NODES.args, '--no-headers']);
    const [name, ...row] = output.trim().split(/\s+/);
    const free = served?.items[0]?.slots.free ?? -1; // pods may come and go in between
    return { output, isRight: name === cluster.nodeName && row.includes(String(free)) };
  };
  const { output, isRight } = await lookUntil(look, (seen) => seen.isRight);
  return isRight ? [] : [output];
}

/** Waits until it shows that of the pod. @returns what it shows if it does not */
export async function podProblems(
  { cluster, namespace }: { readonly cluster: Cluster; readonly namespace: string },
  name: string,
  holds: (pod: PodGpuUsage) => boolean,
): Promise<string[]> {
  return problemsUntil(cluster, podIn(namespace, name), holds);
}

/** The usage of a pod, if it has any. */
export function servedPod(
  { cluster, namespace }: { readonly cluster: Cluster; readonly namespace: string },
  name: string,
): Promise<PodGpuUsage | undefined> {
  return ask(cluster, podIn(namespace, name));
}

/** The answer of the usage API; undefined: an error, for example while it restarts. */
function ask<T>(cluster: Cluster, { path }: Question): Promise<T | undefined> {
  return cluster.api.request<T>({ path: `/apis/${API_VERSION}/${path}` }).catch(() => undefined);
}

/**
 * Polls the usage API, because a start of the command takes half a second of a processor. What it
 * serves, the command must show.
 */
async function problemsUntil<T>(
  cluster: Cluster,
  question: Question,
  holds: (value: T) => boolean,
): Promise<string[]> {
  const show = async () => {
    const { value, output } = await gpuUsageJson<T>(cluster, question.args);
    return value && holds(value) ? [] : [`kubectl gpu-usage shows ${output}`];
  };
  const look = async () => {
    const served = await ask<T>(cluster, question);
    return served && holds(served) ? show() : undefined;
  };
  return (await lookUntil(look, (problems) => problems?.length === 0)) ?? show();
}

/**
 * Waits until `kubectl gpu-usage` shows exactly these pods of the cluster at work, and the slots
 * that they leave.
 * @returns the differences
 */
export async function usageProblems(
  cluster: Cluster,
  namespace: string,
  slots: Readonly<Record<string, number>>,
  waiting: readonly string[] = [],
): Promise<string[]> {
  const free = SLOTS - Object.values(slots).reduce((sum, count) => sum + count, 0);
  const areFree = ({ items }: List<NodeGpuUsage>) =>
    items.reduce((sum, node) => sum + node.slots.free, 0) === free;
  const problems = await Promise.all([
    podsProblems(cluster, namespace, slots, waiting),
    problemsUntil(cluster, NODES, areFree),
  ]);
  return problems.flat();
}

/**
 * Waits until `kubectl gpu-usage` shows exactly these pods of the namespace at work, each with its
 * memory, and the waiting pods.
 * @param slots of each pod at work, by its name
 * @param waiting names of the waiting pods
 * @returns the differences
 */
export function podsProblems(
  cluster: Cluster,
  namespace: string,
  slots: Readonly<Record<string, number>>,
  waiting: readonly string[] = [],
): Promise<string[]> {
  const arePods = ({ items }: List<PodGpuUsage>) => {
    const waits = items.filter(({ state }) => state === 'Waiting');
    const names = waits.map(({ metadata }) => metadata.name).sort();
    const rest = items.filter(({ state }) => state !== 'Waiting');
    return `${names}` === `${[...waiting].sort()}` && areAtWork(rest, slots);
  };
  return problemsUntil(cluster, podsIn(namespace), arePods);
}

interface List<T> {
  readonly items: readonly T[];
}

function areAtWork(pods: readonly PodGpuUsage[], slots: Readonly<Record<string, number>>): boolean {
  const right = ({ metadata, state, slots: count, message, containers }: PodGpuUsage) =>
    state === 'Active' &&
    count === slots[metadata.name] &&
    message === undefined &&
    containers.every(({ memory }) => memory.used !== undefined);
  return pods.length === Object.keys(slots).length && pods.every(right);
}
