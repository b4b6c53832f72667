import type { V1ContainerStatus, V1Pod } from '@kubernetes/client-node';
import { ANNOTATION, MIRROR_ANNOTATION, RESOURCE } from '@nvidia-virtual/kube-common/names';
import { readSlots } from '@nvidia-virtual/kube-common/pod-request';

/** A pod that asks for slots, as far as it matters here. */
export type GpuPod = Pick<V1Pod, 'metadata' | 'spec' | 'status'>;

const USED = [...Object.values(ANNOTATION), MIRROR_ANNOTATION] as readonly string[];

/**
 * A cluster has many pods, and most ask for nothing of ours: of these nothing is kept, of the
 * others what is needed.
 */
export function keepPod(pod: V1Pod): GpuPod | undefined {
  const { metadata = {}, spec, status } = pod;
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  const asks = containers.some(
    ({ resources }) =>
      readSlots(resources?.limits?.[RESOURCE] ?? resources?.requests?.[RESOURCE]) > 0,
  );
  if (!asks || status?.phase === 'Succeeded' || status?.phase === 'Failed') return undefined;
  const {
    name,
    namespace,
    uid,
    labels,
    creationTimestamp,
    deletionTimestamp,
    annotations = {},
  } = metadata;
  const slim = ({ name: container, resources, restartPolicy }: (typeof containers)[number]) => ({
    name: container,
    resources,
    restartPolicy,
  });
  return {
    metadata: {
      ...{ name, namespace, uid, labels, creationTimestamp, deletionTimestamp },
      annotations: Object.fromEntries(
        Object.entries(annotations).filter(([key]) => USED.includes(key)),
      ),
    },
    spec: {
      nodeName: spec?.nodeName,
      initContainers: spec?.initContainers?.map(slim),
      containers: spec?.containers.map(slim),
    },
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

/** Why a pod has no node yet, in the words of whoever decides it. */
export function whyWaiting({ status }: GpuPod): string {
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status === 'False')
    return [scheduled.reason, scheduled.message].filter(Boolean).join(': ');
  return 'No scheduler has looked at it yet.';
}

/** Why a pod on a node does not run yet; undefined when all its containers have begun. */
export function whyStarting({ status }: GpuPod): string | undefined {
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  for (const { name, state } of statuses) {
    // What waits for the init containers before it says no more than that.
    if (!state?.waiting || state.waiting.reason === 'PodInitializing') continue;
    const { reason, message } = state.waiting;
    return `${name}: ${[reason, message].filter(Boolean).join(': ')}`;
  }
  if (statuses.some(({ state }) => state?.running)) return undefined;
  return (
    status?.message ??
    (statuses.length === 0 || statuses.some(({ state }) => state?.waiting)
      ? 'The kubelet prepares it.'
      : undefined)
  );
}
