import { setTimeout as sleep } from 'node:timers/promises';
import type { V1DaemonSet, V1Node, V1NodeList, V1Pod, V1PodList } from '@kubernetes/client-node';
import { ApiError, type ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { daemonSetState } from '@nvidia-virtual/kube-common/daemon-set';
import {
  GPU_LOST_CONDITION,
  INVENTORY_ANNOTATION,
  PROBLEMS_ANNOTATION,
} from '@nvidia-virtual/kube-common/names';
import { ReleaseError } from './errors.js';

interface NodeCleaningOptions {
  readonly api: ApiServer;
  readonly namespace: string;
  /**
   * The DaemonSet whose pods serve the nodes. Nothing is removed while it exists and is not being
   * deleted.
   */
  readonly servedBy: string;
  /**
   * The DaemonSet whose pods clean the nodes. A pod is ready when its node is clean. Undefined: the
   * nodes are not cleaned.
   */
  readonly daemonSet?: string;
  /** Objects that ended processes or Helm's hooks created. */
  readonly leftovers: Readonly<Record<LeftoverKind, readonly string[]>>;
  /** Timeout, in milliseconds. */
  readonly patience: number;
  /** Receives progress messages. */
  readonly say: (sentence: string) => void;
}

type LeftoverKind = keyof typeof APIS;

const APIS = {
  leases: '/apis/coordination.k8s.io/v1',
  jobs: '/apis/batch/v1',
  daemonsets: '/apis/apps/v1',
  pods: '/api/v1',
} as const;
const ANNOTATIONS = [INVENTORY_ANNOTATION, PROBLEMS_ANNOTATION];
const PAUSE_MS = 1000;
const NOT_FOUND = 404;

/**
 * Waits until all nodes are clean, then removes what Helm does not know: annotations and conditions
 * of nodes, and `leftovers`. @throws ReleaseError RELEASE_LIVES, NODES_NOT_CLEAN, ApiError
 */
export async function finishUninstall(options: NodeCleaningOptions): Promise<void> {
  const { api, namespace, servedBy } = options;
  if ((await daemonSetState(api, namespace, servedBy)) === 'lives')
    throw new ReleaseError('RELEASE_LIVES', { namespace, daemonSet: servedBy });
  const unclean =
    options.daemonSet === undefined ? [] : await untilClean(options, options.daemonSet);
  for (const kind of Object.keys(APIS) as LeftoverKind[]) {
    for (const name of options.leftovers[kind]) await remove(options, kind, name);
  }
  await cleanNodeObjects(options);
  if (unclean.length > 0)
    throw new ReleaseError('NODES_NOT_CLEAN', {
      seconds: options.patience / 1000,
      nodes: unclean.join(', '),
    });
}

/** @returns the nodes that were not clean at the timeout. */
async function untilClean(options: NodeCleaningOptions, daemonSet: string): Promise<string[]> {
  const end = Date.now() + options.patience;
  let said = '';
  for (;;) {
    const waiting = await findUnclean(options, daemonSet);
    if (waiting !== undefined && waiting.length === 0) return [];
    if (Date.now() >= end) return waiting ?? ['(their pods were not created)'];
    const sentence =
      waiting === undefined
        ? 'The pods that clean the nodes are being created.'
        : `Being cleaned: ${waiting.join(', ')}.`;
    if (sentence !== said) options.say(sentence);
    said = sentence;
    await sleep(PAUSE_MS);
  }
}

/** Undefined until all pods of the DaemonSet exist. */
async function findUnclean(
  { api, namespace }: NodeCleaningOptions,
  daemonSet: string,
): Promise<string[] | undefined> {
  const { metadata, spec, status } = await api.request<V1DaemonSet>({
    path: `/apis/apps/v1/namespaces/${namespace}/daemonsets/${daemonSet}`,
  });
  if (status?.observedGeneration !== metadata?.generation) return undefined;
  const labelSelector = Object.entries(spec?.selector.matchLabels ?? {}).map(
    ([name, value]) => `${name}=${value}`,
  );
  const pods = await api.request<V1PodList>({
    path: `/api/v1/namespaces/${namespace}/pods`,
    query: { labelSelector: labelSelector.join(',') },
  });
  if (pods.items.length < (status?.desiredNumberScheduled ?? 0)) return undefined;
  return pods.items
    .filter((pod) => !isReady(pod))
    .map(({ spec: { nodeName = '(no node yet)' } = {} }) => nodeName);
}

function isReady({ status }: V1Pod): boolean {
  return (
    status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false
  );
}

/** Also removes the pods of a Job, which would stay by default. */
async function remove(
  { api, namespace }: NodeCleaningOptions,
  kind: LeftoverKind,
  name: string,
): Promise<void> {
  const path = `${APIS[kind]}/namespaces/${namespace}/${kind}/${name}`;
  try {
    await api.request({ method: 'DELETE', path, query: { propagationPolicy: 'Background' } });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== NOT_FOUND) throw error;
  }
}

async function cleanNodeObjects({ api }: NodeCleaningOptions): Promise<void> {
  const { items } = await api.request<V1NodeList>({ path: '/api/v1/nodes', timeout: 60_000 });
  for (const { metadata } of items.filter(isAnnotated)) {
    const body = {
      metadata: { annotations: Object.fromEntries(ANNOTATIONS.map((name) => [name, null])) },
    };
    await api.request({
      method: 'PATCH',
      path: `/api/v1/nodes/${metadata?.name}`,
      body,
      contentType: 'application/merge-patch+json',
    });
    const conditions = [{ $patch: 'delete', type: GPU_LOST_CONDITION }];
    await api.request({
      method: 'PATCH',
      path: `/api/v1/nodes/${metadata?.name}/status`,
      body: { status: { conditions } },
      contentType: 'application/strategic-merge-patch+json',
    });
  }
}

function isAnnotated({ metadata }: V1Node): boolean {
  return ANNOTATIONS.some((name) => metadata?.annotations?.[name] !== undefined);
}
