/** Types of the messages of proto/admin.proto, which documents the fields. */

export type PolicyMessage = 'POLICY_UNSPECIFIED' | 'POLICY_BURST' | 'POLICY_FIXED';
export type SharingModeMessage =
  | 'SHARING_MODE_UNSPECIFIED'
  | 'SHARING_MODE_EXCLUSIVE'
  | 'SHARING_MODE_CONCURRENT';

export type MemoryStateMessage =
  | 'MEMORY_STATE_UNSPECIFIED'
  | 'MEMORY_STATE_RESIDENT'
  | 'MEMORY_STATE_LEAVING'
  | 'MEMORY_STATE_OUT'
  | 'MEMORY_STATE_ENTERING';

export interface GpuMessage {
  readonly uuid: string;
  readonly index: number;
  readonly name: string;
  readonly memoryBytes: number;
  readonly contextMemoryBytes: number;
  readonly mode: SharingModeMessage;
  readonly memoryLeftBytes: number;
  readonly fixedShareLeftPercent: number;
  readonly warmWorkers: number;
  readonly warmWorkersReady: number;
  readonly unhealthy: string;
  readonly slots: number;
  readonly slotMemoryBytes: number;
  readonly mostSlots?: number;
}

export interface ArrivalMessage {
  readonly pod: string;
  readonly move: number;
}

export interface PlacedPodMessage {
  readonly pod: string;
  readonly gpus: readonly PlacedGpuMessage[];
}

interface PlacedGpuMessage {
  readonly gpu: string;
  readonly slots: number;
}

interface ListGpusResponse {
  readonly node: string;
  readonly gpus: readonly GpuMessage[];
  readonly selection: string;
  readonly movable: boolean;
  readonly arrivals: readonly ArrivalMessage[];
  readonly placed: readonly PlacedPodMessage[];
}

interface OwnerMessage {
  readonly namespace: string;
  readonly pod: string;
  readonly podUid: string;
  readonly container: string;
}

export interface LimitsMessage {
  readonly sessions: number;
  readonly pinnedMemoryBytes: number;
  readonly threads: number;
  readonly handles: number;
}

export interface TimeUseMessage {
  readonly granted: number;
  readonly waited: number;
  readonly overrun: number;
  readonly windows: number;
}

export interface SessionMessage {
  readonly number: number;
  readonly pid: number;
  readonly uid: number;
  readonly program: string;
  readonly workerPid: number;
  readonly startedAt: string;
  readonly memoryBytes: number;
  readonly peakMemoryBytes: number;
  readonly contexts: number;
  readonly launches: number;
  readonly bytesHostToDevice: number;
  readonly bytesDeviceToHost: number;
  readonly bytesDeviceToDevice: number;
  readonly faults: number;
}

export interface AllocationMessage {
  readonly id: string;
  readonly name: string;
  readonly gpuUuids: readonly string[];
  readonly memoryBytes: number;
  readonly sharePercent: number;
  readonly policy: PolicyMessage;
  readonly priority: number;
  readonly mode: SharingModeMessage;
  readonly limits: LimitsMessage;
  readonly uid?: number;
  readonly createdAt: string;
  readonly draining: boolean;
  readonly suspended: boolean;
  readonly state: MemoryStateMessage;
  readonly checkpoint: string;
  readonly outBytes: number;
  readonly socketPath: string;
  readonly memoryUsedBytes: number;
  readonly peakMemoryBytes: number;
  readonly time: TimeUseMessage;
  readonly sessions: readonly SessionMessage[];
  readonly owner?: OwnerMessage | null;
  readonly slots: readonly string[];
}

export interface NodeUseMessage {
  readonly node: string;
  readonly time: string;
  readonly gpus: readonly GpuMessage[];
  readonly allocations: readonly AllocationMessage[];
}

export interface CreateAllocationRequest {
  readonly name?: string;
  readonly gpus?: readonly string[];
  readonly memoryBytes?: number;
  readonly sharePercent?: number;
  readonly policy?: PolicyMessage;
  readonly priority?: number;
  readonly mode?: SharingModeMessage;
  readonly limits?: Partial<LimitsMessage>;
  readonly holderPid?: number;
  readonly lowLatency?: boolean;
}

/** Request and response of each call. */
export interface AdminCalls {
  listGpus: [Record<string, never>, ListGpusResponse];
  createAllocation: [CreateAllocationRequest, AllocationMessage];
  listAllocations: [Record<string, never>, { readonly allocations: readonly AllocationMessage[] }];
  getAllocation: [{ readonly id: string }, AllocationMessage];
  drainAllocation: [{ readonly id: string }, AllocationMessage];
  suspendAllocation: [{ readonly id: string }, AllocationMessage];
  resumeAllocation: [{ readonly id: string }, AllocationMessage];
  moveAllocation: [{ readonly id: string; readonly gpu: string }, AllocationMessage];
  checkpointAllocation: [
    { readonly id: string; readonly directory: string; readonly key: string },
    AllocationMessage,
  ];
  restoreAllocation: [{ readonly directory: string; readonly key: string }, AllocationMessage];
  deleteAllocation: [{ readonly id: string; readonly force: boolean }, Record<string, never>];
}
