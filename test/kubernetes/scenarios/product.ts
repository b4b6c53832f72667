import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { V1Pod } from '@kubernetes/client-node';
import type { CommandResult } from '@nvidia-virtual/toolchain/command';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { REPOSITORY } from '../../paths.js';
import { lookUntil, PATIENCE_MS } from '../../processes.js';
import type { Cluster } from '../cluster/cluster.js';
import { nodeGpus } from './node-inventory.js';
import { RESOURCE } from './pods.js';
import { NAMESPACE, RELEASE } from './release.js';

const CHART = path.join(REPOSITORY, 'charts', 'nvidia-virtual');
/** Slots of the node's GPU. */
export const SLOTS = 10;

/** Values of the chart by their names. */
export type Values = Readonly<Record<string, string>>;

/** The node has imported the images that the chart names without a value. */
const VALUES = { 'node.backend': 'simulated' };

/** `--set` for each value. */
function settings(cluster: Cluster, values: Values): string[] {
  return Object.entries({ ...VALUES, ...cluster.values, ...values }).flatMap(([name, value]) => [
    '--set',
    `${name}=${value}`,
  ]);
}

/**
 * Installs as documented. @param chart default: this tree's. @param values in addition to those of
 * every test
 */
export async function install(cluster: Cluster, chart = CHART, values: Values = {}): Promise<void> {
  changes.delete(cluster);
  await cluster.helm(
    'install',
    RELEASE,
    chart,
    '-n',
    NAMESPACE,
    '--create-namespace',
    ...settings(cluster, values),
    '--timeout',
    '120s',
  );
  await rolledOut(cluster);
}

/** Installs with other values than `install`; it may fail. */
export function tryInstall(cluster: Cluster, values: Values): Promise<CommandResult> {
  const place = ['-n', NAMESPACE, '--create-namespace', '--timeout', '180s'];
  return cluster.tryHelm(['install', RELEASE, CHART, ...place, ...settings(cluster, values)]);
}

/** Resolves when the new pods are ready. @param values in addition to those of every test */
export async function upgrade(cluster: Cluster, values: Values = {}): Promise<void> {
  await cluster.helm(
    'upgrade',
    RELEASE,
    CHART,
    '-n',
    NAMESPACE,
    ...settings(cluster, values),
    '--timeout',
    '120s',
  );
  await rolledOut(cluster);
}

/** The last change of each product. */
const changes = new WeakMap<Cluster, { readonly values: Values; readonly done: Promise<void> }>();

/**
 * Upgrades the product to these values, if it has others. Resolves when its pods are ready and the
 * node offers the slots.
 */
export function change(cluster: Cluster, values: Values, slots = SLOTS): Promise<void> {
  const last = changes.get(cluster) ?? { values: {}, done: Promise.resolve() };
  if (isDeepStrictEqual(values, last.values)) return last.done;
  const done = upgradeUntilOffered(cluster, values, slots);
  changes.set(cluster, { values, done });
  return done;
}

async function upgradeUntilOffered(cluster: Cluster, values: Values, slots: number): Promise<void> {
  await upgrade(cluster, values);
  for (const part of ['node', 'scheduler', 'webhook']) await untilReady(cluster, part);
  await untilOffered(cluster, slots);
  await lookUntil(
    async () => (await nodeGpus(cluster)).reduce((sum, gpu) => sum + gpu.slots, 0),
    (sum) => sum === slots,
  );
}

/** Restarts all pods of the product at once. Resolves when they are ready again. */
export async function restartProduct(cluster: Cluster): Promise<void> {
  await cluster.kubectl('-n', NAMESPACE, 'rollout', 'restart', ...(await workloads(cluster)));
  await rolledOut(cluster);
}

/** Resolves when all of them have new pods, which are ready. */
async function rolledOut(cluster: Cluster): Promise<void> {
  const status = ['rollout', 'status', '--timeout=120s', ...(await workloads(cluster))];
  await cluster.kubectl('-n', NAMESPACE, ...status);
}

/** `daemonset.apps/NAME` and others. */
async function workloads(cluster: Cluster): Promise<string[]> {
  const kinds = 'daemonset,deployment,statefulset';
  const names = await cluster.kubectl('-n', NAMESPACE, 'get', kinds, '-o', 'name');
  return names.trim().split('\n');
}

export async function uninstall(cluster: Cluster): Promise<void> {
  await cluster.helm('uninstall', RELEASE, '-n', NAMESPACE, '--timeout', '120s');
}

/** Slots that the node offers, according to its status. */
export async function offeredSlots(cluster: Cluster): Promise<number> {
  const node = await cluster.api.request<{ status?: { allocatable?: Record<string, string> } }>({
    path: `/api/v1/nodes/${cluster.nodeName}`,
  });
  return Number(node.status?.allocatable?.[RESOURCE] ?? 0);
}

/** @throws Error if they differ after the timeout */
export async function untilOffered(
  cluster: Cluster,
  slots: number,
  milliseconds = PATIENCE_MS,
): Promise<void> {
  const areOffered = (offered: number) => offered === slots;
  const offered = await lookUntil(() => offeredSlots(cluster), areOffered, { milliseconds });
  if (!areOffered(offered)) throw new Error(`the node offers ${offered} slots, and not ${slots}`);
}

/** Environment in which a user's kubectl and helm work on this cluster. */
export function userTools(cluster: Cluster): NodeJS.ProcessEnv {
  const home = path.join(cluster.directory, 'helm');
  mkdirSync(home, { recursive: true });
  return {
    KUBECONFIG: cluster.kubeconfig,
    PATH: `${path.dirname(kubernetesTool('kubectl'))}:${process.env['PATH']}`,
    HELM_CACHE_HOME: home,
    HELM_CONFIG_HOME: home,
    HELM_DATA_HOME: home,
  };
}

/** The pods of one component: `node`, `scheduler`, `webhook`, `usage-api`, `redis`. */
export async function partPods(cluster: Cluster, part: string): Promise<V1Pod[]> {
  const query = { labelSelector: `app.kubernetes.io/component=${part}` };
  return (
    await cluster.api.request<{ items: V1Pod[] }>({
      path: `/api/v1/namespaces/${NAMESPACE}/pods`,
      query,
    })
  ).items;
}

/**
 * Waits until all of them are ready, in containers that started since. @throws Error after the
 * timeout
 */
export async function untilReady(cluster: Cluster, part: string, since = 0): Promise<void> {
  const areReady = (pods: readonly V1Pod[]) =>
    pods.length > 0 && pods.every((pod) => isReady(pod, since));
  if (areReady(await lookUntil(() => partPods(cluster, part), areReady))) return;
  const label = `app.kubernetes.io/component=${part}`;
  const { output } = await cluster.tryKubectl(['-n', NAMESPACE, 'describe', 'pods', '-l', label]);
  throw new Error(`not all pods of ${part} are ready:\n${output}`);
}

function isReady({ metadata, status }: V1Pod, since: number): boolean {
  const ready = (status?.conditions ?? []).some(
    (condition) => condition.type === 'Ready' && condition.status === 'True',
  );
  const starts = (status?.containerStatuses ?? []).map(({ state }) =>
    Date.parse(String(state?.running?.startedAt)),
  );
  return (
    metadata?.deletionTimestamp === undefined && ready && starts.every((start) => start >= since)
  );
}
