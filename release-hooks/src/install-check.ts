import { setTimeout as sleep } from 'node:timers/promises';
import type {
  CoreV1Event,
  CoreV1EventList,
  V1DaemonSet,
  V1Deployment,
  V1StatefulSet,
} from '@kubernetes/client-node';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { ReleaseError } from './errors.js';
import { refusalOf } from './refusal.js';

/** `made`: all pods exist, whether they run or not. `ready`: all pods are ready. */
export type Extent = 'made' | 'ready';

interface InstallCheckOptions {
  readonly api: ApiServer;
  readonly namespace: string;
  /** Value of the label `app.kubernetes.io/instance` of the workloads. */
  readonly release: string;
  readonly extent: Extent;
  /** Timeout, in milliseconds. */
  readonly patience: number;
}

type Workload = V1DaemonSet | V1Deployment | V1StatefulSet;

const KINDS = ['daemonsets', 'deployments', 'statefulsets'] as const;
const PAUSE_MS = 1000;

/**
 * Waits until the pods of all workloads exist or are ready. Throws as soon as Kubernetes refuses
 * one.
 * @throws ReleaseError PODS_REFUSED, NOT_READY; ApiError
 */
export async function checkInstallation(options: InstallCheckOptions): Promise<void> {
  // Events carry whole seconds.
  const start = Math.floor(Date.now() / 1000) * 1000;
  const end = start + options.patience;
  for (;;) {
    const waiting = (await findWorkloads(options)).flatMap(
      (workload) => whatIsMissing(workload, options.extent) ?? [],
    );
    if (waiting.length === 0) return;
    const event = await findRefusal(options, waiting, start);
    if (event) throw refusalOf(event, options.namespace);
    if (Date.now() >= end) {
      const sentences = waiting.map(({ name, missing }) => `${name} (${missing})`).join(', ');
      throw new ReleaseError('NOT_READY', {
        seconds: options.patience / 1000,
        waiting: sentences,
        namespace: options.namespace,
      });
    }
    await sleep(PAUSE_MS);
  }
}

async function findWorkloads({
  api,
  namespace,
  release,
}: InstallCheckOptions): Promise<Workload[]> {
  const instance = `app.kubernetes.io/instance=${release}`;
  const labelSelector = `app.kubernetes.io/name=nvidia-virtual,${instance}`;
  const paths = KINDS.map((kind) => `/apis/apps/v1/namespaces/${namespace}/${kind}`);
  const lists = await Promise.all(
    paths.map((path) => api.request<{ items: Workload[] }>({ path, query: { labelSelector } })),
  );
  return lists.flatMap(({ items }) => items);
}

interface Missing {
  readonly name: string;
  readonly missing: string;
}

function whatIsMissing(workload: Workload, extent: Extent): Missing | undefined {
  const name = workload.metadata?.name ?? '';
  if (workload.status?.observedGeneration !== workload.metadata?.generation)
    return { name, missing: 'not looked at yet' };
  const { wanted, made, ready } = countPods(workload);
  if (made < wanted) return { name, missing: `${made} of ${wanted} pods made` };
  if (extent === 'ready' && ready < wanted)
    return { name, missing: `${ready} of ${wanted} pods ready` };
  return undefined;
}

function countPods({ spec, status }: Workload): { wanted: number; made: number; ready: number } {
  if (status && 'desiredNumberScheduled' in status)
    return {
      wanted: status.desiredNumberScheduled,
      made: status.currentNumberScheduled,
      ready: status.numberReady,
    };
  const { replicas: wanted = 1 } = (spec ?? {}) as { replicas?: number };
  return { wanted, made: status?.replicas ?? 0, ready: status?.readyReplicas ?? 0 };
}

/**
 * The newest event at or after `since` that reports a refused pod of a waiting workload. Older
 * causes may be repaired by now; if not, the controller retries and reports again. The name of a
 * ReplicaSet begins with that of its Deployment.
 */
async function findRefusal(
  { api, namespace }: InstallCheckOptions,
  waiting: readonly Missing[],
  since: number,
): Promise<CoreV1Event | undefined> {
  const fieldSelector = 'reason=FailedCreate';
  const { items } = await api.request<CoreV1EventList>({
    path: `/api/v1/namespaces/${namespace}/events`,
    query: { fieldSelector },
  });
  const recent = items.filter((event) => timeOf(event) >= since);
  const ours = recent.filter(({ involvedObject }) =>
    waiting.some(({ name }) => isOf(involvedObject.name ?? '', name)),
  );
  return ours.toSorted((a, b) => timeOf(a) - timeOf(b)).at(-1);
}

function isOf(owner: string, workload: string): boolean {
  return owner === workload || owner.replace(/-[0-9a-z]+$/, '') === workload;
}

function timeOf({ lastTimestamp, eventTime, metadata }: CoreV1Event): number {
  return Date.parse(String(lastTimestamp ?? eventTime ?? metadata.creationTimestamp));
}
