/**
 * What the ledger holds, and what allocation.json and session.json hold: the nouns that proxy,
 * metrics and ledger share. A record crosses builds (it is on disk, and in Redis), so it carries a
 * version: what is added later is optional to read, and nothing changes its meaning. Sizes are
 * bytes, times of day are ISO 8601 in UTC.
 */

/** `burst`: idle time of the GPU goes to whoever wants it; `fixed`: never more than the share. */
export type Policy = 'burst' | 'fixed';

/**
 * `exclusive`: one allocation at a time has the GPU; `concurrent`: kernels of several run side by
 * side under MPS, and a fault hits all.
 */
export type SharingMode = 'exclusive' | 'concurrent';

/** One GPU of a node. */
export interface GpuRecord {
  /** As the driver spells it: `GPU-` and a UUID. */
  readonly uuid: string;
  /** As the driver counts; it may change when the node starts again. */
  readonly index: number;
  readonly name: string;
  readonly memory: number;
  /** What one context holds before any allocation. */
  readonly contextMemory: number;
  /** What one stream takes; undefined: nobody measured it. */
  readonly streamMemory?: number | undefined;
  /** What the heap of kernels’ malloc takes, once in a context; undefined: nobody measured it. */
  readonly heapMemory?: number | undefined;
  readonly mode: SharingMode;
}

/** What the driver takes of a GPU for things that are no allocations. */
export type DriverMemory = 'contextMemory' | 'streamMemory' | 'heapMemory';

/** The most that one allocation may have, so that it cannot exhaust the node. */
export interface Limits {
  readonly sessions: number;
  /** Pinned host memory of all sessions together. */
  readonly pinnedMemory: number;
  /** Threads that use the GPU, in all sessions together. */
  readonly threads: number;
  /** Open handles (contexts, streams, events, modules, ...) of all sessions together. */
  readonly handles: number;
}

/** The container of a pod that has an allocation. */
export interface Owner {
  readonly namespace: string;
  readonly pod: string;
  /** As the kubelet has it: a static pod's is not the API server's. */
  readonly podUid: string;
  readonly container: string;
}

/** allocation.json, whole. */
export interface AllocationSpecification {
  readonly version: 1;
  /** 16 lowercase hexadecimal digits, random. */
  readonly id: string;
  /** What a person called it; any number of allocations may have the same. */
  readonly name: string | undefined;
  /** UUIDs, one or more. */
  readonly gpus: readonly string[];
  /** On each GPU; 0: no quota. */
  readonly memory: number;
  /** Percent of each GPU's time, 1 to 100. */
  readonly share: number;
  readonly policy: Policy;
  /** Higher first: -100 to 100, normally 0. */
  readonly priority: number;
  readonly mode: SharingMode;
  readonly limits: Limits;
  /** Whom its workers run as; undefined: the proxy's own. */
  readonly uid: number | undefined;
  readonly createdAt: string;
  /** It takes no new session, and ends with its last one. */
  readonly draining: boolean;
  /** Undefined for one that no pod has. */
  readonly owner?: Owner | undefined;
  /** The kubelet's device ids; undefined for one that the kubelet did not grant. */
  readonly slots?: readonly string[] | undefined;
}

/** A process; its number alone may come back as another's. */
export interface ProcessRecord {
  readonly pid: number;
  /** Clock ticks since boot, as in /proc/PID/stat. */
  readonly startTime: string;
  readonly program: string;
  readonly uid: number;
}

/** session.json, whole. */
export interface SessionRecord {
  readonly version: 1;
  /** Unique in its allocation; never used again. */
  readonly number: number;
  /** The id of its allocation. */
  readonly allocation: string;
  readonly client: ProcessRecord;
  readonly worker: { readonly pid: number; readonly startTime: string };
  /** In the quota file. */
  readonly slot: number;
  readonly startedAt: string;
}

/** What a session does now, and did so far; from its figures file and its quota slot. */
export interface SessionUse {
  /** Device memory in use. */
  readonly memory: number;
  readonly peakMemory: number;
  /** Alive now. */
  readonly contexts: number;
  readonly launches: number;
  readonly bytesCopied: {
    readonly hostToDevice: number;
    readonly deviceToHost: number;
    readonly deviceToDevice: number;
  };
  readonly faults: number;
}

/** GPU time, from the arbiter: nanoseconds since the allocation was made. */
export interface TimeUse {
  readonly granted: number;
  readonly waited: number;
  /** Used past the end of a window, and charged. */
  readonly overrun: number;
  /** How many windows it got. */
  readonly windows: number;
}

/**
 * What it had of the GPUs, in nanoseconds: work that goes on past the end of a window is charged as
 * that in the window is.
 */
export function usedTime({ granted, overrun }: Pick<TimeUse, 'granted' | 'overrun'>): number {
  return granted + overrun;
}

/** Everything that one node says about itself at one moment. */
export interface NodeSnapshot {
  readonly node: string;
  readonly gpus: readonly GpuRecord[];
  readonly allocations: readonly {
    readonly specification: AllocationSpecification;
    readonly time: TimeUse;
    readonly sessions: readonly { readonly record: SessionRecord; readonly use: SessionUse }[];
  }[];
}
