import type { Latency, MemoryState, Policy, SharingMode, Suspender } from '@nvidia-virtual/ledger';

export const GROUP = 'usage.nvidia-virtual.io';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}`;

/**
 * - Waiting: the pod has no node yet.
 * - Starting: it has a node, but its container does not run yet.
 * - Idle: it runs, and no process in it uses the GPU.
 * - Active: a process in it uses the GPU.
 * - Suspended: its programs wait until it is resumed.
 * - Unknown: it runs, but its node reports no usage.
 * - Ending: it is being deleted.
 */
export type PodState =
  | 'Waiting'
  | 'Starting'
  | 'Idle'
  | 'Active'
  | 'Suspended'
  | 'Unknown'
  | 'Ending';

interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly creationTimestamp?: string;
  readonly resourceVersion?: string;
}

/** Fields of both kinds. Sizes are bytes; shares and used time are percent of a GPU's time. */
export interface UsageObject {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: string;
  readonly metadata: Metadata;
  /** Time of the node's report. Missing: no report. */
  readonly timestamp?: string;
  /**
   * Length in seconds of the window for used time. It ends at `timestamp`. Missing: no window yet.
   */
  readonly windowSeconds?: number;
  /** Message for a person: why the pod waits, why figures are missing. */
  readonly message?: string;
}

interface MemoryUsage {
  /** Per GPU. Missing: unknown until the pod has a node. 0: no quota. */
  readonly quota?: number;
  /** Sum over all its GPUs. */
  readonly used?: number;
  /** Sum of the peaks of the running processes. */
  readonly peak?: number;
  /** The part of `used` that is in host memory, because the container is suspended. */
  readonly out?: number;
  /** Missing: it has no allocation yet. */
  readonly state?: MemoryState;
}

interface TimeUsage {
  /** Granted share of each of its GPUs. */
  readonly share?: number;
  /** Time used in the window. */
  readonly used?: number;
  /** Part of the window spent waiting for a GPU. */
  readonly waiting?: number;
  /** Since the allocation was made. */
  readonly busySeconds?: number;
  readonly waitingSeconds?: number;
  readonly policy?: Policy;
  readonly priority?: number;
  readonly latency?: Latency;
}

export interface ContainerUsage {
  readonly name: string;
  readonly slots: number;
  readonly gpus: readonly {
    readonly uuid: string;
    readonly index?: number;
    readonly name?: string;
  }[];
  /** UUIDs of other GPUs of which it holds slots, because its pod moves. Missing: none. */
  readonly reserved?: readonly string[];
  readonly memory: MemoryUsage;
  readonly time: TimeUsage;
  /** Processes that use the GPU. */
  readonly sessions?: number;
  /** Faults of these processes. */
  readonly faults?: number;
  /** Its suspenders. Missing: it is not suspended. */
  readonly suspendedBy?: readonly Suspender[];
}

export interface PodGpuUsage extends UsageObject {
  readonly kind: 'PodGpuUsage';
  readonly state: PodState;
  readonly node?: string;
  readonly podUid: string;
  readonly slots: number;
  readonly containers: readonly ContainerUsage[];
}

export interface SlotCount {
  readonly total: number;
  readonly used: number;
  readonly free: number;
}

export interface GpuUsage {
  readonly uuid: string;
  readonly index?: number;
  readonly name: string;
  readonly mode: SharingMode;
  readonly healthy: boolean;
  /** It gets no new pods, and its pods move to others. Undefined: it is not drained. */
  readonly drained?: true;
  readonly slots: SlotCount;
  readonly memory: { readonly total: number; readonly granted?: number; readonly used?: number };
  readonly time: { readonly granted?: number; readonly used?: number };
  /** Allocations on this GPU. */
  readonly allocations?: number;
}

export interface NodeGpuUsage extends UsageObject {
  readonly kind: 'NodeGpuUsage';
  /** Silent: the node has GPUs but reports no usage. */
  readonly state: 'Ready' | 'Unhealthy' | 'Silent';
  readonly slots: SlotCount;
  readonly memory: GpuUsage['memory'];
  readonly gpus: readonly GpuUsage[];
}
