import type { Policy, SharingMode } from '@nvidia-virtual/ledger';

export const GROUP = 'usage.nvidia-virtual.io';
export const VERSION = 'v1alpha1';
export const API_VERSION = `${GROUP}/${VERSION}`;

/**
 * Waiting: no node yet. Starting: on a node, its container does not run yet. Idle: it runs, and no
 * program in it uses the GPU. Active: one does. Unknown: it runs, and its node does not say what it
 * uses. Ending: it is being deleted.
 */
export type PodState = 'Waiting' | 'Starting' | 'Idle' | 'Active' | 'Unknown' | 'Ending';

export interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly creationTimestamp?: string;
  readonly resourceVersion?: string;
}

/** What both kinds have. Sizes are bytes; shares and uses of time are percent of a GPU's time. */
export interface UsageObject {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: string;
  readonly metadata: Metadata;
  /** When the node said what is told here. Missing: it did not. */
  readonly timestamp?: string;
  /**
   * Seconds before `timestamp` that "used" time is of. Missing: there are no two figures to compare
   * yet.
   */
  readonly windowSeconds?: number;
  /** What a person should know: why it waits, why figures are missing. */
  readonly message?: string;
}

export interface MemoryUsage {
  /** On each GPU. Missing: not known before it has a node; 0: none. */
  readonly quota?: number;
  /** On all its GPUs together. */
  readonly used?: number;
  /** The most that the living programs had, each at its worst time. */
  readonly peak?: number;
}

export interface TimeUsage {
  /** Of each of its GPUs, asked for and granted. */
  readonly share?: number;
  /** Got in the window. */
  readonly used?: number;
  /** Of the window, spent waiting for a turn. */
  readonly waiting?: number;
  /** Since the container got its part. */
  readonly busySeconds?: number;
  readonly waitingSeconds?: number;
  readonly policy?: Policy;
  readonly priority?: number;
}

export interface ContainerUsage {
  readonly name: string;
  readonly slots: number;
  readonly gpus: readonly {
    readonly uuid: string;
    readonly index?: number;
    readonly name?: string;
  }[];
  readonly memory: MemoryUsage;
  readonly time: TimeUsage;
  /** Processes that use the GPU. */
  readonly sessions?: number;
  /** Of these processes. */
  readonly faults?: number;
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
  readonly slots: SlotCount;
  readonly memory: { readonly total: number; readonly granted?: number; readonly used?: number };
  readonly time: { readonly granted?: number; readonly used?: number };
  /** Containers and others that have a part of it. */
  readonly allocations?: number;
}

export interface NodeGpuUsage extends UsageObject {
  readonly kind: 'NodeGpuUsage';
  /** Silent: it has GPUs, and does not say what is used of them. */
  readonly state: 'Ready' | 'Unhealthy' | 'Silent';
  readonly slots: SlotCount;
  readonly memory: GpuUsage['memory'];
  readonly gpus: readonly GpuUsage[];
}
