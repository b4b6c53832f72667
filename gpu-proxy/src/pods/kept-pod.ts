import type { V1Pod } from '@kubernetes/client-node';
import { keptContainers } from '@nvidia-virtual/kube-common/kept-parts';
import { ANNOTATION, MIRROR_ANNOTATION } from '@nvidia-virtual/kube-common/names';
import { HASH, SOURCE } from './pod-identity.js';

const ANNOTATIONS: readonly string[] = [
  ...Object.values(ANNOTATION),
  ...[MIRROR_ANNOTATION, HASH, SOURCE],
];

/**
 * The part of a pod that gpu-proxy reads. A tenant can name a node in any number of pods, each of
 * which takes 8 MB of memory as a whole; those that the kubelet refuses stay in the list.
 */
export function keepPod({ metadata = {}, spec, status }: V1Pod): V1Pod {
  const { name, namespace, uid, creationTimestamp, annotations = {}, ownerReferences } = metadata;
  return {
    metadata: {
      ...{ name, namespace, uid, creationTimestamp },
      annotations: Object.fromEntries(
        Object.entries(annotations).filter(([key]) => ANNOTATIONS.includes(key)),
      ),
      ownerReferences: ownerReferences?.filter(({ controller }) => controller === true),
    },
    spec: {
      nodeName: spec?.nodeName,
      initContainers: keptContainers(spec?.initContainers),
      containers: keptContainers(spec?.containers),
    },
    status: {
      phase: status?.phase,
      startTime: status?.startTime,
      conditions: status?.conditions?.filter(({ type }) => type === 'Initialized'),
      initContainerStatuses: status?.initContainerStatuses,
      containerStatuses: status?.containerStatuses,
      ephemeralContainerStatuses: status?.ephemeralContainerStatuses,
    },
  } as V1Pod;
}
