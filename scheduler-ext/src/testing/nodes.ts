import type { Inventory, InventoryGpu } from '@nvidia-virtual/kube-common/assignment';
import type { ContainerRequest } from '@nvidia-virtual/kube-common/pod-request';
import { NodeGpus } from '../cluster/node-gpus.js';
import type { PodRecord } from '../cluster/pod.js';
import { Demand } from '../placement/demand.js';

const GIB = 2 ** 30;

/** A GPU of 10 slots of 13 GiB. */
export function gpuOf(uuid: string, more: Partial<InventoryGpu> = {}): InventoryGpu {
  return {
    uuid,
    name: 'NVIDIA H200',
    memory: 141 * GIB,
    slotMemory: 13 * GIB,
    slots: 10,
    mode: 'exclusive',
    healthy: true,
    ...more,
  };
}

export function inventoryOf(...gpus: readonly InventoryGpu[]): string {
  return JSON.stringify({ version: 1, gpus });
}

/** Of GPUs `a` and `b`. */
export function inventoryWith(more: Partial<Inventory>): string {
  return JSON.stringify({ version: 1, gpus: [gpuOf('a'), gpuOf('b')], ...more });
}

export function nodeOf(...gpus: readonly InventoryGpu[]): NodeGpus {
  const node = new NodeGpus('node');
  node.setInventory(inventoryOf(...gpus));
  return node;
}

/** A node with GPUs `a`, `b`, …, each with this many slots in use. */
export function nodeWithUsed(...used: readonly number[]): NodeGpus {
  const node = nodeOf(...used.map((_, index) => gpuOf(letter(index))));
  used.forEach((slots, index) => {
    node.hold({
      uid: `on-${letter(index)}`,
      priority: 0,
      holding: new Map([[letter(index), slots]]),
      demand: undefined,
    });
  });
  return node;
}

export function needOf(
  container: string,
  slots: number,
  more: Partial<ContainerRequest> = {},
): ContainerRequest {
  const open = {
    memory: undefined,
    cores: undefined,
    policy: undefined,
    priority: undefined,
    mode: undefined,
    latency: undefined,
    trace: undefined,
  };
  return { container, init: false, slots, gpus: 1, ...open, ...more };
}

export function demandOf(...containers: readonly ContainerRequest[]): Demand {
  return new Demand({ containers, gpuTypes: [], gpuUuids: [], placement: undefined });
}

/** A pending pod with one container that requests slots. */
export function podOf(
  uid: string,
  more: Partial<PodRecord> & { readonly slots?: number } = {},
): PodRecord {
  const { slots = 1, ...record } = more;
  const open = {
    node: undefined,
    nominated: undefined,
    ended: false,
    leavesAt: undefined,
    problem: undefined,
    assignment: undefined,
    assignmentText: undefined,
    holding: undefined,
    moveTo: undefined,
    version: '1',
    controlled: false,
    group: undefined,
    labels: {},
  };
  return {
    uid,
    namespace: 'default',
    name: uid,
    priority: 0,
    demand: demandOf(needOf('main', slots)),
    ...open,
    ...record,
  };
}

function letter(index: number): string {
  return String.fromCharCode('a'.charCodeAt(0) + index);
}
