import type { V1Pod } from '@kubernetes/client-node';
import { type AssignedGpu, readAssignment } from '@nvidia-virtual/kube-common/assignment';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import {
  type ContainerRequest,
  PodRequestError,
  readPodRequest,
} from '@nvidia-virtual/kube-common/pod-request';
import { ProxyError } from '@nvidia-virtual/service/errors';

/** The GPU request of the container that has a grant. */
export interface GrantRequest extends ContainerRequest {
  readonly gpuTypes: readonly string[];
  readonly gpuUuids: readonly string[];
  /** GPUs assigned by our scheduler; undefined: another scheduler bound the pod. */
  readonly assigned: readonly AssignedGpu[] | undefined;
}

/**
 * @param slots number of slots granted by the kubelet; overrides the pod's request
 * @throws ProxyError POD_REQUEST_WRONG, ASSIGNMENT_WRONG
 */
export function requestOf(pod: V1Pod, container: string, slots: number): GrantRequest {
  const request = readRequest(pod);
  const own = request?.containers.find((one) => one.container === container);
  if (!request || !own)
    throw new ProxyError('CONTAINER_ASKS_NOTHING', { pod: nameOf(pod), container });
  const { gpuTypes, gpuUuids } = request;
  const assigned = assignedTo(pod, container);
  if (assigned) checkAssigned(pod, container, assigned, slots);
  const gpus = assigned?.length ?? own.gpus;
  return { ...own, slots, gpus, gpuTypes, gpuUuids, assigned };
}

export function nameOf({ metadata }: V1Pod): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}

function readRequest(pod: V1Pod) {
  try {
    return readPodRequest(pod);
  } catch (error) {
    if (error instanceof PodRequestError)
      throw new ProxyError('POD_REQUEST_WRONG', { pod: nameOf(pod), problems: error.message });
    throw error;
  }
}

function assignedTo(pod: V1Pod, container: string): readonly AssignedGpu[] | undefined {
  const text = pod.metadata?.annotations?.[ANNOTATION.assigned];
  try {
    return readAssignment(text)?.containers[container];
  } catch (error) {
    throw new ProxyError('ASSIGNMENT_WRONG', {
      pod: nameOf(pod),
      container,
      reason: (error as Error).message,
    });
  }
}

/** An allocation has the same quota on each of its GPUs. */
function checkAssigned(
  pod: V1Pod,
  container: string,
  assigned: readonly AssignedGpu[],
  slots: number,
): void {
  const [first] = assigned;
  const even = first !== undefined && assigned.every((one) => one.slots === first.slots);
  const sum = assigned.reduce((total, one) => total + one.slots, 0);
  if (even && sum === slots) return;
  const reason = even
    ? `it has ${sum} slots, and the kubelet gave ${slots}`
    : 'its slots are not spread evenly over its GPUs';
  throw new ProxyError('ASSIGNMENT_WRONG', { pod: nameOf(pod), container, reason });
}
