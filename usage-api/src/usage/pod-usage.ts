import { assignmentOf, heldBy, type Inventory } from '@nvidia-virtual/kube-common/assignment';
import { type ContainerRequest, peak } from '@nvidia-virtual/kube-common/pod-request';
import { asksToSuspend } from '@nvidia-virtual/kube-common/suspended';
import { usedTime } from '@nvidia-virtual/ledger';
import { printable } from '@nvidia-virtual/service/printable';
import { API_VERSION, type ContainerUsage, type PodGpuUsage, type PodState } from '../resources.js';
import type { NodeFigures } from './figures.js';
import type { GpuRequest } from './gpu-request.js';
import { type Allocation, allocationOf } from './ownership.js';
import { type GpuPod, whyStarting, whyWaiting } from './pods.js';
import { timestamp, windowSeconds } from './time.js';

/** Data about a pod from other sources. */
interface PodContext {
  readonly gpuRequest: GpuRequest;
  /** Figures of the pod's node. */
  readonly figures: NodeFigures | undefined;
  readonly inventory: Inventory | undefined;
  /** Sentence that says why figures may be missing or old. */
  readonly trouble: string | undefined;
}

export function podUsage(pod: GpuPod, context: PodContext): PodGpuUsage {
  const { name = '', namespace = '', labels, creationTimestamp, uid = '' } = pod.metadata ?? {};
  const { containers } = context.gpuRequest;
  const allocations = new Map(
    containers.map(({ container }) => [container, allocationOf(pod, container, context.figures)]),
  );
  const usages = containers.map((request) =>
    containerUsage(request, allocations.get(request.container), pod, context),
  );
  const held = [...allocations.values()].filter((allocation) => allocation !== undefined);
  const state = stateOf(pod, context, held);
  const message = messageOf(pod, state, context, held);
  const node = pod.spec?.nodeName;
  return {
    apiVersion: API_VERSION,
    kind: 'PodGpuUsage',
    metadata: {
      name,
      namespace,
      ...(labels && { labels }),
      ...(creationTimestamp && { creationTimestamp: timestamp(creationTimestamp) }),
    },
    podUid: uid,
    state,
    ...(message !== undefined && { message }),
    ...(node !== undefined && { node }),
    slots: peak(containers),
    ...(context.figures && { timestamp: timestamp(context.figures.at) }),
    ...windowSeconds([...allocations.values()]),
    containers: usages,
  };
}

function containerUsage(
  request: ContainerRequest,
  allocation: Allocation | undefined,
  pod: GpuPod,
  context: PodContext,
): ContainerUsage {
  const common = { name: request.container, slots: request.slots };
  if (allocation)
    return {
      ...common,
      ...granted(allocation, context.figures as NodeFigures),
      ...reserved(allocation, pod, request.container),
    };
  const running = context.figures !== undefined && pod.spec?.nodeName !== undefined;
  return {
    ...common,
    ...expected(request, pod, context),
    ...(running && { sessions: 0, faults: 0 }),
  };
}

/** GPUs of its assignment that the figures of its node, which may be older, do not have. */
function reserved(
  { specification: { gpus } }: Allocation,
  pod: GpuPod,
  container: string,
): Pick<ContainerUsage, 'reserved'> {
  const assignment = assignmentOf(pod);
  const held = assignment ? heldBy(assignment, container).map(({ gpu }) => gpu) : [];
  const others = [...new Set(held)].filter((uuid) => !gpus.includes(uuid));
  return others.length > 0 ? { reserved: others } : {};
}

function granted(
  { specification, time, sessions, rate, outBytes, state }: Allocation,
  { gpus }: NodeFigures,
): Omit<ContainerUsage, 'name' | 'slots'> {
  const sum = (figure: (use: (typeof sessions)[number]['use']) => number) =>
    sessions.reduce((total, { use }) => total + figure(use), 0);
  return {
    gpus: specification.gpus.map((uuid) => {
      const gpu = gpus.find((one) => one.uuid === uuid);
      return { uuid, ...(gpu && { index: gpu.index, name: gpu.name }) };
    }),
    memory: {
      quota: specification.memory,
      used: sum(({ memory }) => memory),
      peak: sum(({ peakMemory }) => peakMemory),
      ...(outBytes !== undefined && { out: outBytes }),
      ...(state && { state }),
    },
    time: {
      share: specification.share,
      ...(rate && { used: rate.used, waiting: rate.waiting }),
      busySeconds: seconds(usedTime(time)),
      waitingSeconds: seconds(time.waited),
      policy: specification.policy,
      priority: specification.priority,
      ...(specification.latency && { latency: specification.latency }),
    },
    sessions: sessions.length,
    faults: sum(({ faults }) => faults),
    ...(specification.suspendedBy && { suspendedBy: specification.suspendedBy }),
  };
}

/**
 * Expected quota of a container before first use: from its slots, or lower if annotated so. While
 * the pod moves, on both GPUs: without figures of its node, its programs may be on either one.
 */
function expected(
  request: ContainerRequest,
  pod: GpuPod,
  { inventory }: PodContext,
): Pick<ContainerUsage, 'gpus' | 'memory' | 'time'> {
  const assignment = assignmentOf(pod);
  const assigned = assignment?.containers[request.container] ?? [];
  const held = assignment ? heldBy(assignment, request.container) : [];
  const gpu =
    inventory?.gpus.find(({ uuid }) => assigned.some((one) => one.gpu === uuid)) ??
    inventory?.gpus[0];
  const onEach = request.slots / request.gpus;
  const memory = least(request.memory, gpu && Math.floor(onEach * gpu.slotMemory));
  const { taken = onEach } = assigned.find((one) => one.gpu === gpu?.uuid) ?? {};
  const part = request.cores === undefined ? onEach : taken;
  const share = least(request.cores, gpu && Math.floor((part / gpu.slots) * 100));
  return {
    gpus: held.map(({ gpu: uuid }) => ({ uuid })),
    memory: memory === undefined ? {} : { quota: memory },
    time: {
      ...(share !== undefined && { share }),
      ...(request.policy && { policy: request.policy }),
      ...(request.priority !== undefined && { priority: request.priority }),
      ...(request.latency && { latency: request.latency }),
    },
  };
}

function least(...values: (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

function stateOf(
  pod: GpuPod,
  { figures }: PodContext,
  allocations: readonly Allocation[],
): PodState {
  if (pod.metadata?.deletionTimestamp) return 'Ending';
  if (!pod.spec?.nodeName) return 'Waiting';
  if (isSuspended(pod, figures, allocations)) return 'Suspended';
  if (allocations.some(({ sessions }) => sessions.length > 0)) return 'Active';
  if (whyStarting(pod) !== undefined) return 'Starting';
  return figures ? 'Idle' : 'Unknown';
}

/** A container that has not used its GPU yet has no allocation: its first call will wait. */
function isSuspended(
  pod: GpuPod,
  figures: NodeFigures | undefined,
  allocations: readonly Allocation[],
): boolean {
  if (allocations.length > 0) return allocations.every(isSuspendedForLong);
  return figures !== undefined && whyStarting(pod) === undefined && asksToSuspend(pod);
}

/** False for an allocation that only waits for room on an oversubscribed GPU. */
function isSuspendedForLong({ specification: { suspended, suspendedBy } }: Allocation): boolean {
  return suspended === true && !suspendedBy?.every((by) => by === 'policy');
}

function isSuspendedByNode({ specification: { suspendedBy = [] } }: Allocation): boolean {
  return suspendedBy.includes('node');
}

function messageOf(
  pod: GpuPod,
  state: PodState,
  { gpuRequest, figures, trouble }: PodContext,
  allocations: readonly Allocation[],
): string | undefined {
  const silent =
    `Node ${pod.spec?.nodeName} has not reported its GPUs recently. Check the ` +
    `nvidia-virtual pod on that node.`;
  const sentences = [
    state === 'Waiting' ? whyWaiting(pod) : state === 'Starting' ? whyStarting(pod) : undefined,
    gpuRequest.problem,
    ...allocations.map(({ suspensionRefused }) => suspensionRefused),
    state === 'Suspended' && allocations.some(isSuspendedByNode)
      ? `An administrator of node ${pod.spec?.nodeName} suspended the pod, and can resume it.`
      : undefined,
    state !== 'Waiting' && state !== 'Starting' && !figures ? (trouble ?? silent) : undefined,
  ].filter((sentence) => sentence !== undefined);
  // Container runtimes repeat paths and commands of the pod.
  return sentences.length === 0 ? undefined : printable(sentences.join(' '));
}

function seconds(nanoseconds: number): number {
  return Math.round(nanoseconds / 1e6) / 1000;
}
