import type { V1ContainerStatus, V1Pod } from '@kubernetes/client-node';
import { keptContainers, keptLabels } from '@nvidia-virtual/kube-common/kept-parts';
import { ANNOTATION, MIRROR_ANNOTATION } from '@nvidia-virtual/kube-common/names';

/** The needed part of a pod that requests slots. */
export type GpuPod = Pick<V1Pod, 'metadata' | 'spec' | 'status'>;

const KEPT_ANNOTATIONS = [...Object.values(ANNOTATION), MIRROR_ANNOTATION] as readonly string[];

/** Drops pods without slots and strips the others, because a cluster can have very many pods. */
export function keepPod(pod: V1Pod): GpuPod | undefined {
  const { metadata = {}, spec, status } = pod;
  const initContainers = keptContainers(spec?.initContainers);
  const containers = keptContainers(spec?.containers);
  const requestsSlots = initContainers.length + containers.length > 0;
  if (!requestsSlots || status?.phase === 'Succeeded' || status?.phase === 'Failed')
    return undefined;
  const {
    name,
    namespace,
    uid,
    labels,
    creationTimestamp,
    deletionTimestamp,
    annotations = {},
  } = metadata;
  return {
    metadata: {
      ...{ name, namespace, uid, creationTimestamp, deletionTimestamp },
      ...(labels && { labels: keptLabels(labels) }),
      annotations: Object.fromEntries(
        Object.entries(annotations).filter(([key]) => KEPT_ANNOTATIONS.includes(key)),
      ),
    },
    spec: { nodeName: spec?.nodeName, initContainers, containers },
    status: {
      phase: status?.phase,
      reason: status?.reason,
      message: status?.message,
      conditions: status?.conditions?.filter(({ type }) => type === 'PodScheduled'),
      initContainerStatuses: status?.initContainerStatuses?.map(slimStatus),
      containerStatuses: status?.containerStatuses?.map(slimStatus),
    },
  } as GpuPod;
}

function slimStatus({ name, state }: V1ContainerStatus): Pick<V1ContainerStatus, 'name' | 'state'> {
  return {
    name,
    ...(state?.waiting
      ? { state: { waiting: state.waiting } }
      : state?.running
        ? { state: { running: {} } }
        : {}),
  };
}

/** The scheduler's reason why a pod has no node yet. */
export function whyWaiting({ status }: GpuPod): string {
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status === 'False')
    return [scheduled.reason, scheduled.message].filter(Boolean).join(': ');
  return 'No scheduler has considered the pod yet.';
}

/** Why a pod on a node does not run yet; undefined if all its containers have started. */
export function whyStarting({ status }: GpuPod): string | undefined {
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  for (const { name, state } of statuses) {
    // A container that waits for init containers has no reason of its own.
    if (!state?.waiting || state.waiting.reason === 'PodInitializing') continue;
    const { reason, message } = state.waiting;
    return `${name}: ${[reason, message].filter(Boolean).join(': ')}`;
  }
  if (statuses.some(({ state }) => state?.running)) return undefined;
  return (
    status?.message ??
    (statuses.length === 0 || statuses.some(({ state }) => state?.waiting)
      ? 'The kubelet is preparing the pod.'
      : undefined)
  );
}
