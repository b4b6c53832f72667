import type { V1Container, V1Node, V1Pod } from '@kubernetes/client-node';
import type { Inventory, InventoryGpu } from '@nvidia-virtual/kube-common/assignment';
import { INVENTORY_ANNOTATION, RESOURCE, SCHEDULER_NAME } from '@nvidia-virtual/kube-common/names';

const GIB = 2 ** 30;

/** A GPU as a device plugin describes it. */
export function gpu(uuid: string, more: Partial<InventoryGpu> = {}): InventoryGpu {
  const memory = { memory: 141 * GIB, slotMemory: 13 * GIB };
  return {
    uuid,
    name: 'NVIDIA H200',
    ...memory,
    slots: 10,
    mode: 'exclusive',
    healthy: true,
    ...more,
  };
}

export function inventory(gpus: readonly InventoryGpu[]): string {
  return JSON.stringify({ version: 1, gpus } satisfies Inventory);
}

/** A ready node with the slots of its GPUs. */
export function node(name: string, gpus: readonly InventoryGpu[]): V1Node {
  const slots = gpus.reduce((sum, { slots }) => sum + slots, 0);
  const allocatable = { cpu: '1000', memory: '1000Gi', pods: '1000', [RESOURCE]: String(slots) };
  const now = new Date();
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'Test',
    message: '',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: { 'kubernetes.io/hostname': name },
      ...(slots > 0 && { annotations: { [INVENTORY_ANNOTATION]: inventory(gpus) } }),
    },
    status: { capacity: allocatable, allocatable, conditions: [ready] },
  };
}

export function container(
  name: string,
  slots: number,
  more: Partial<V1Container> = {},
): V1Container {
  const asked = slots > 0 && {
    resources: { limits: { [RESOURCE]: String(slots) }, requests: { [RESOURCE]: String(slots) } },
  };
  return { name, image: 'any', ...asked, ...more };
}

interface PodOptions {
  readonly slots?: number;
  readonly annotations?: Record<string, string>;
  readonly labels?: Record<string, string>;
  readonly spec?: Partial<NonNullable<V1Pod['spec']>>;
}

/** A pod that is deleted at once, because there is no kubelet. */
export function pod(
  name: string,
  { slots = 1, annotations = {}, labels = {}, spec = {} }: PodOptions = {},
): V1Pod {
  const containers = [container('main', slots)];
  const defaults = { schedulerName: SCHEDULER_NAME, containers, terminationGracePeriodSeconds: 0 };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', annotations, labels },
    spec: { ...defaults, ...spec },
  };
}
