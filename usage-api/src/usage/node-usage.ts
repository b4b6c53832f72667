import type { V1Node } from '@kubernetes/client-node';
import type { Inventory } from '@nvidia-virtual/kube-common/assignment';
import { drainedGpus } from '@nvidia-virtual/kube-common/drained';
import {
  DRAINED_ANNOTATION,
  INVENTORY_ANNOTATION,
  RESOURCE,
} from '@nvidia-virtual/kube-common/names';
import { readSlots } from '@nvidia-virtual/kube-common/pod-request';
import { API_VERSION, type GpuUsage, type NodeGpuUsage, type SlotCount } from '../resources.js';
import type { NodeFigures } from './figures.js';
import { inventoryOf } from './gpu-request.js';
import type { SlotMap } from './slots.js';
import { timestamp, windowSeconds } from './time.js';

/** The needed part of a node that has nvidia-virtual GPUs. */
export interface GpuNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly creationTimestamp: string | undefined;
  readonly inventory: Inventory | undefined;
  /** UUIDs of drained GPUs, in lower case. */
  readonly drained: readonly string[];
  /** Slots that the kubelet can allocate. */
  readonly allocatable: number;
}

export function keepNode({ metadata = {}, status }: V1Node): GpuNode | undefined {
  const capacity = readSlots(status?.capacity?.[RESOURCE]);
  if (capacity === 0 && metadata.annotations?.[INVENTORY_ANNOTATION] === undefined)
    return undefined;
  return {
    name: metadata.name ?? '',
    labels: metadata.labels,
    creationTimestamp: metadata.creationTimestamp && timestamp(metadata.creationTimestamp),
    inventory: inventoryOf(metadata.annotations),
    drained: [...drainedGpus(metadata.annotations?.[DRAINED_ANNOTATION])],
    allocatable: readSlots(status?.allocatable?.[RESOURCE]),
  };
}

interface NodeContext {
  readonly figures: NodeFigures | undefined;
  /** Slots held by its pods. */
  readonly slots: SlotMap;
  readonly trouble: string | undefined;
}

export function nodeUsage(node: GpuNode, { figures, slots, trouble }: NodeContext): NodeGpuUsage {
  const gpus = gpusOf(node, figures).map((gpu) => gpuUsage(gpu, figures, slots));
  const state =
    figures === undefined ? 'Silent' : gpus.every(({ healthy }) => healthy) ? 'Ready' : 'Unhealthy';
  const message = messageOf(node, state, gpus, trouble);
  return {
    apiVersion: API_VERSION,
    kind: 'NodeGpuUsage',
    metadata: {
      name: node.name,
      ...(node.labels && { labels: node.labels }),
      ...(node.creationTimestamp !== undefined && { creationTimestamp: node.creationTimestamp }),
    },
    state,
    ...(message !== undefined && { message }),
    ...(figures && { timestamp: timestamp(figures.at), ...windowSeconds(figures.allocations) }),
    slots: nodeSlots(node, gpus, slots),
    memory: {
      total: gpus.reduce((sum, { memory }) => sum + memory.total, 0),
      ...(figures && {
        granted: total(gpus, ({ memory }) => memory.granted),
        used: total(gpus, ({ memory }) => memory.used),
      }),
    },
    gpus,
  };
}

type Known = Pick<GpuUsage, 'uuid' | 'name' | 'mode' | 'healthy' | 'drained'> & {
  readonly index?: number;
  readonly total: number;
  readonly slots: number;
};

/** Slots and health come from the device plugin's inventory, the index from the ledger. */
function gpusOf({ inventory, drained }: GpuNode, figures: NodeFigures | undefined): Known[] {
  const indices = new Map(figures?.gpus.map(({ uuid, index }) => [uuid, index]));
  const known = (inventory?.gpus ?? []).map(({ uuid, name, mode, healthy, memory, slots }) => {
    const index = indices.get(uuid);
    return {
      uuid,
      name,
      mode,
      healthy,
      ...(drained.includes(uuid.toLowerCase()) && { drained: true as const }),
      total: memory,
      slots,
      ...(index !== undefined && { index }),
    };
  });
  if (known.length > 0) return known.sort((a, b) => (a.index ?? 0) - (b.index ?? 0));
  return (figures?.gpus ?? []).map(({ uuid, name, mode, memory, index }) => ({
    uuid,
    name,
    mode,
    healthy: true,
    total: memory,
    slots: 0,
    index,
  }));
}

function gpuUsage(gpu: Known, figures: NodeFigures | undefined, slots: SlotMap): GpuUsage {
  const here = (figures?.allocations ?? []).filter(({ specification }) =>
    specification.gpus.includes(gpu.uuid),
  );
  const sum = (figure: (one: (typeof here)[number]) => number) =>
    here.reduce((result, one) => result + figure(one), 0);
  const rated = here.some(({ rate }) => rate) || here.length === 0;
  const { uuid, name, mode, healthy, drained, total: memory } = gpu;
  return {
    ...{ uuid, ...(gpu.index !== undefined && { index: gpu.index }), name, mode, healthy },
    ...(drained && { drained }),
    slots: count(gpu.slots, slots.on(uuid), healthy && !drained),
    memory: {
      total: memory,
      ...(figures && {
        granted: sum(({ specification }) => specification.memory),
        // A session reports the sum over its GPUs.
        used: Math.round(
          sum(
            ({ specification, sessions, outBytes = 0 }) =>
              (sessions.reduce((m, { use }) => m + use.memory, 0) - outBytes) /
              specification.gpus.length,
          ),
        ),
      }),
    },
    time: figures
      ? {
          granted: sum(({ specification }) => specification.share),
          ...(rated && { used: tenths(sum(({ rate }) => rate?.used ?? 0)) }),
        }
      : {},
    ...(figures && { allocations: here.length }),
  };
}

function nodeSlots({ allocatable }: GpuNode, gpus: readonly GpuUsage[], slots: SlotMap): SlotCount {
  const all = gpus.reduce((sum, gpu) => sum + gpu.slots.total, 0) || allocatable;
  const most =
    gpus.length === 0
      ? allocatable
      : gpus.reduce((sum, gpu) => sum + (isOpen(gpu) ? gpu.slots.total : 0), 0);
  return {
    total: all,
    used: slots.total,
    free: Math.max(0, Math.min(most, allocatable) - slots.total),
  };
}

/** Whether it gets new pods. */
function isOpen({ healthy, drained }: GpuUsage): boolean {
  return healthy && !drained;
}

function count(all: number, used: number, open: boolean): SlotCount {
  return { total: all, used, free: open ? Math.max(0, all - used) : 0 };
}

function messageOf(
  { name, inventory }: GpuNode,
  state: NodeGpuUsage['state'],
  gpus: readonly GpuUsage[],
  trouble: string | undefined,
) {
  const ill = gpus.filter(({ healthy }) => !healthy).map(({ uuid }) => uuid);
  const sentences = [
    ...(ill.length > 0
      ? [`${ill.join(', ')} failed. Its slots are unavailable until it recovers.`]
      : []),
    ...(inventory === undefined
      ? [`The device plugin of node ${name} has not published its GPUs yet.`]
      : []),
    ...(state === 'Silent'
      ? [
          trouble ??
            `Node ${name} has not reported its GPUs recently. ` +
              'Check the nvidia-virtual pod on that node.',
        ]
      : []),
  ];
  return sentences.length === 0 ? undefined : sentences.join(' ');
}

function total(gpus: readonly GpuUsage[], figure: (gpu: GpuUsage) => number | undefined): number {
  return gpus.reduce((sum, gpu) => sum + (figure(gpu) ?? 0), 0);
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10;
}
