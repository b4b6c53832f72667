import { type Inventory, readInventory } from '@nvidia-virtual/kube-common/assignment';
import { INVENTORY_ANNOTATION } from '@nvidia-virtual/kube-common/names';
import {
  type ContainerRequest,
  PodRequestError,
  readPodRequest,
} from '@nvidia-virtual/kube-common/pod-request';
import type { GpuPod } from './pods.js';

export interface GpuRequest {
  readonly containers: readonly ContainerRequest[];
  /** Sentences about invalid annotations. */
  readonly problem?: string;
}

/** Safe to cache by identity: a changed pod is a new object. */
const READ = new WeakMap<GpuPod, GpuRequest>();

/** The GPU request of a pod. Invalid annotations are ignored: its slots still count. */
export function readGpuRequest(pod: GpuPod): GpuRequest {
  const request = READ.get(pod) ?? read(pod);
  READ.set(pod, request);
  return request;
}

function read(pod: GpuPod): GpuRequest {
  try {
    return { containers: readPodRequest(pod)?.containers ?? [] };
  } catch (error) {
    if (!(error instanceof PodRequestError)) throw error;
    return { containers: readSlots(pod), problem: error.message };
  }
}

/** Without the annotations. Empty for too many containers, which get no GPU. */
function readSlots(pod: GpuPod): readonly ContainerRequest[] {
  try {
    const bare = { ...pod, metadata: { ...pod.metadata, annotations: {} } };
    return readPodRequest(bare)?.containers ?? [];
  } catch (error) {
    if (error instanceof PodRequestError) return [];
    throw error;
  }
}

export function inventoryOf(
  annotations: Readonly<Record<string, string>> | undefined,
): Inventory | undefined {
  return readable(() => readInventory(annotations?.[INVENTORY_ANNOTATION]));
}

function readable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
