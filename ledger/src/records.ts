/**
 * Records of the ledger, allocation.json and session.json, shared by proxy, metrics and ledger.
 * They are read by other builds, from disk and from Redis, so they carry a version: new fields are
 * optional, and no field changes its meaning. Sizes are bytes; times of day are ISO 8601 in UTC.
 */

/** `burst`: may use idle time of the GPU beyond its share; `fixed`: never more than its share. */
export type Policy = 'burst' | 'fixed';

/**
 * `exclusive`: one allocation at a time uses the GPU. `concurrent`: kernels of several allocations
 * run simultaneously under MPS, and a fault of one affects all.
 */
export type SharingMode = 'exclusive' | 'concurrent';

/** One GPU of a node. */
export interface GpuRecord {
  /** `GPU-` and a UUID, as reported by the driver. */
  readonly uuid: string;
  /** The driver's index. It may change after a boot. */
  readonly index: number;
  readonly name: string;
  readonly memory: number;
  /** Memory of one context before any allocation. */
  readonly contextMemory: number;
  /** Memory of one stream. Undefined: not measured. */
  readonly streamMemory?: number | undefined;
  /** Memory of the heap for malloc in kernels, once per context. Undefined: not measured. */
  readonly heapMemory?: number | undefined;
  readonly mode: SharingMode;
}

/** GPU memory that the driver uses for itself. */
export type DriverMemory = 'contextMemory' | 'streamMemory' | 'heapMemory';

/** Limits of one allocation, so that it cannot exhaust the node. */
export interface Limits {
  readonly sessions: number;
  /** Pinned host memory, sum over all sessions. */
  readonly pinnedMemory: number;
  /** Threads that use the GPU, sum over all sessions. */
  readonly threads: number;
  /** Open handles (contexts, streams, events, modules, ...), sum over all sessions. */
  readonly handles: number;
}

/** The container that owns an allocation. */
export interface Owner {
  readonly namespace: string;
  readonly pod: string;
  /** The kubelet's UID. For a static pod it differs from the API server's. */
  readonly podUid: string;
  readonly container: string;
}

/** `low`: accepts short windows, which cost throughput, if all on the GPU accept them. */
export type Latency = 'low';

/** `summary`: programs write a table of calls and GPU work to standard error when they exit. */
export type TraceMode = 'summary';

/**
 * `node`: an administrator, by `gpu-proxy suspend`; `pod`: the annotation of its pod; `policy`: an
 * oversubscribed GPU has no room for it now.
 */
export type Suspender = 'node' | 'pod' | 'policy';

/** The files of an allocation's sessions. */
export interface CheckpointRecord {
  readonly directory: string;
  /** `writing`: the workers count, and the files are not complete. `file`: the files count. */
  readonly stage: 'writing' | 'file';
  /** Version of the driver that has to continue it. */
  readonly driver: string;
  /** Whether the programs went on until then: they do so afterwards. */
  readonly resumes: boolean;
}

/** Content of allocation.json. */
export interface AllocationSpecification {
  readonly version: 1;
  /** 16 lowercase hexadecimal digits, random. */
  readonly id: string;
  /** Name given by a user. Not unique. */
  readonly name: string | undefined;
  /** One or more UUIDs. */
  readonly gpus: readonly string[];
  /** Quota per GPU. 0: no quota. */
  readonly memory: number;
  /** Percent of the time of each GPU, 1 to 100. */
  readonly share: number;
  readonly policy: Policy;
  /** -100 to 100, normally 0. Higher runs first. */
  readonly priority: number;
  readonly mode: SharingMode;
  /** Undefined: normal. */
  readonly latency?: Latency | undefined;
  readonly limits: Limits;
  /** Undefined: nothing is traced, unless a program asks for it. */
  readonly trace?: TraceMode | undefined;
  /** User id of its workers. Undefined: the proxy's. */
  readonly uid: number | undefined;
  readonly createdAt: string;
  /** It accepts no new session, and is deleted after its last one. */
  readonly draining: boolean;
  /** Its sessions have no GPU time, and new ones wait. Undefined: it is not suspended. */
  readonly suspended?: boolean | undefined;
  /** Its suspenders. It is resumed when all of them have resumed it. Undefined: there are none. */
  readonly suspendedBy?: readonly Suspender[] | undefined;
  /** The latest event of its pod says that it is suspended. Undefined: no, or there is none. */
  readonly toldSuspended?: boolean | undefined;
  /**
   * The second GPU of an allocation that moves: its memory is reserved there, too. Undefined: it
   * does not move.
   */
  readonly moving?: string | undefined;
  /** The GPU that its programs see, after it has moved. Undefined: the one on which it is. */
  readonly shownAs?: string | undefined;
  /** Its sessions are in files, or are being written or restored. Undefined: they have workers. */
  readonly checkpoint?: CheckpointRecord | undefined;
  /** Undefined: not owned by a pod. */
  readonly owner?: Owner | undefined;
  /** The kubelet's device ids. Undefined: not granted by the kubelet. */
  readonly slots?: readonly string[] | undefined;
}

/** A process. The start time is needed because pids are reused. */
export interface ProcessRecord {
  readonly pid: number;
  /** Clock ticks since boot, as in /proc/PID/stat. */
  readonly startTime: string;
  readonly program: string;
  readonly uid: number;
}

interface WorkerRecord {
  readonly pid: number;
  readonly startTime: string;
}

/** A stopped worker, which can be written to a file. */
export interface ParkedRecord {
  /** The worker. It has ended once it is in a file. */
  readonly worker: WorkerRecord;
  /** The process that holds the worker's files meanwhile. Undefined: the worker has them. */
  readonly keeper?: WorkerRecord | undefined;
  /** The process that was restored from the file. Undefined: there is none. */
  readonly restored?: WorkerRecord | undefined;
}

/** Content of session.json. */
export interface SessionRecord {
  readonly version: 1;
  /** Unique in its allocation, never reused. */
  readonly number: number;
  /** Id of its allocation. */
  readonly allocation: string;
  readonly client: ProcessRecord;
  /** The worker, or its keeper while the worker is in a file. */
  readonly worker: WorkerRecord;
  /** Undefined: its worker is not parked. */
  readonly parked?: ParkedRecord | undefined;
  /** Index in the quota file. */
  readonly slot: number;
  readonly startedAt: string;
}

/** Usage of a session, current and total, from its figures file and its quota slot. */
export interface SessionUse {
  /** Device memory in use. */
  readonly memory: number;
  readonly peakMemory: number;
  /** Existing contexts. */
  readonly contexts: number;
  readonly launches: number;
  readonly bytesCopied: {
    readonly hostToDevice: number;
    readonly deviceToHost: number;
    readonly deviceToDevice: number;
  };
  readonly faults: number;
}

/** GPU time from the arbiter, in nanoseconds since the allocation was created. */
export interface TimeUse {
  readonly granted: number;
  readonly waited: number;
  /** Time used after the end of a window. It is charged too. */
  readonly overrun: number;
  /** Number of windows. */
  readonly windows: number;
}

/**
 * GPU time used, in nanoseconds. Work after the end of a window counts like work in the window.
 */
export function usedTime({ granted, overrun }: Pick<TimeUse, 'granted' | 'overrun'>): number {
  return granted + overrun;
}

/**
 * Place of an allocation's GPU memory: on the GPU, on its way to host memory, in host memory, or on
 * its way back. A suspended allocation is `out`, even if none of its memory could leave.
 */
export type MemoryState = 'resident' | 'leaving' | 'out' | 'entering';

/** The complete state of one node at one time. */
export interface NodeSnapshot {
  readonly node: string;
  readonly gpus: readonly GpuRecord[];
  readonly allocations: readonly {
    readonly specification: AllocationSpecification;
    readonly time: TimeUse;
    /** Undefined: written by an older build. */
    readonly state?: MemoryState | undefined;
    /** The part of the used memory that is in host memory. Undefined: as above. */
    readonly outBytes?: number | undefined;
    /** The reason why its pod's annotation has no effect yet, as a sentence. Undefined: it has. */
    readonly suspensionRefused?: string | undefined;
    readonly sessions: readonly { readonly record: SessionRecord; readonly use: SessionUse }[];
  }[];
}
