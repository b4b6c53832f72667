import {
  type Inventory,
  readAssignment,
  readInventory,
} from '@nvidia-virtual/kube-common/assignment';
import { ANNOTATION, INVENTORY_ANNOTATION } from '@nvidia-virtual/kube-common/names';
import {
  type ContainerRequest,
  PodRequestError,
  readPodRequest,
} from '@nvidia-virtual/kube-common/pod-request';
import type { GpuPod } from './pods.js';

export interface Asked {
  readonly containers: readonly ContainerRequest[];
  /** What is wrong with the annotations, in sentences. */
  readonly problem?: string;
}

/** A pod that changed is another object. */
const READ = new WeakMap<GpuPod, Asked>();

/** What a pod asks for. Where its annotations are wrong, its slots are still what it holds. */
export function readAsked(pod: GpuPod): Asked {
  const asked = READ.get(pod) ?? read(pod);
  READ.set(pod, asked);
  return asked;
}

function read(pod: GpuPod): Asked {
  try {
    return { containers: readPodRequest(pod)?.containers ?? [] };
  } catch (error) {
    if (!(error instanceof PodRequestError)) throw error;
    const bare = { ...pod, metadata: { ...pod.metadata, annotations: {} } };
    return { containers: readPodRequest(bare)?.containers ?? [], problem: error.message };
  }
}

/** Annotations may be written by anybody: what cannot be read is as good as missing. */
export function assignmentOf({ metadata }: GpuPod): ReturnType<typeof readAssignment> {
  return readable(() => readAssignment(metadata?.annotations?.[ANNOTATION.assigned]));
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
