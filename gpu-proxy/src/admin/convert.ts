import type { GpuRecord, MemoryState, Policy, SharingMode } from '@nvidia-virtual/ledger';
import type {
  AllocationMessage,
  ArrivalMessage,
  CreateAllocationRequest,
  GpuMessage,
  LimitsMessage,
  MemoryStateMessage,
  NodeUseMessage,
  PlacedPodMessage,
  PolicyMessage,
  SessionMessage,
  SharingModeMessage,
} from '@nvidia-virtual/node-state/admin/messages';
import type { Grant } from '@nvidia-virtual/node-state/grant';
import { identifyProcess } from '@nvidia-virtual/service/process-table';
import type { Allocation } from '../allocations/allocation.js';
import type { GpuNode } from '../node.js';
import type { AllocationRequest } from '../node-types.js';
import { type SlotSize, slotsOf } from '../pods/slots.js';
import type { LiveSession } from '../sessions/live-session.js';

const POLICIES = { burst: 'POLICY_BURST', fixed: 'POLICY_FIXED' } as const satisfies Record<
  Policy,
  PolicyMessage
>;
const MODES = {
  exclusive: 'SHARING_MODE_EXCLUSIVE',
  concurrent: 'SHARING_MODE_CONCURRENT',
} as const satisfies Record<SharingMode, SharingModeMessage>;

const MEMORY_STATES = {
  resident: 'MEMORY_STATE_RESIDENT',
  leaving: 'MEMORY_STATE_LEAVING',
  out: 'MEMORY_STATE_OUT',
  entering: 'MEMORY_STATE_ENTERING',
} as const satisfies Record<MemoryState, MemoryStateMessage>;

export function policyMessage(policy: Policy): PolicyMessage {
  return POLICIES[policy];
}

export function sharingModeMessage(mode: SharingMode): SharingModeMessage {
  return MODES[mode];
}

/** Converts POLICY_BURST to `burst`; undefined if unspecified. */
export function policyOf(message: PolicyMessage | undefined): Policy | undefined {
  return keyOf(POLICIES, message);
}

export function sharingModeOf(message: SharingModeMessage | undefined): SharingMode | undefined {
  return keyOf(MODES, message);
}

/** Slots and grants of the device plugin. */
export interface Granted {
  /** The configured backend and GPUs of the node. */
  readonly selection: string;
  /** Undefined: the node is not in Kubernetes. */
  readonly slotSize: SlotSize | undefined;
  /** The reason why a GPU is unhealthy, as a sentence; undefined: it is healthy. */
  unhealthy(gpu: GpuRecord): string | undefined;
  /** Unbound grants. */
  grants(): readonly Pick<Grant, 'id' | 'slots' | 'createdAt'>[];
  /** Pods that have left their former GPU. */
  arrivals(): readonly ArrivalMessage[];
  /** Pods that our scheduler did not place, and their GPUs. */
  placed(): readonly PlacedPodMessage[];
}

export const NOT_GRANTED: Granted = {
  selection: '',
  slotSize: undefined,
  grants: () => [],
  arrivals: () => [],
  placed: () => [],
  unhealthy: () => undefined,
};

export function nodeUseMessage(node: GpuNode, granted: Granted): NodeUseMessage {
  return {
    node: node.name,
    time: new Date().toISOString(),
    gpus: node.gpus.map((gpu) => gpuMessage(node, gpu, granted)),
    allocations: [
      ...node.allocations.map((allocation) => allocationMessage(node, allocation)),
      ...granted.grants().map(grantMessage),
    ],
  };
}

export function gpuMessage(
  node: GpuNode,
  gpu: GpuRecord,
  { slotSize, unhealthy }: Granted,
): GpuMessage {
  const left = node.left(gpu);
  const { warmWorkers, oversubscription } = node.settings;
  const slots = slotSize && slotsOf(gpu, { ...slotSize, warmWorkers, oversubscription });
  return {
    uuid: gpu.uuid,
    index: gpu.index,
    name: gpu.name,
    memoryBytes: gpu.memory,
    contextMemoryBytes: gpu.contextMemory,
    mode: MODES[gpu.mode],
    memoryLeftBytes: left.memory,
    fixedShareLeftPercent: left.fixedShare,
    warmWorkers: node.warmWorkers(gpu),
    warmWorkersReady: left.warmWorkersReady,
    unhealthy: unhealthy(gpu) ?? '',
    slots: slots?.count ?? 0,
    slotMemoryBytes: slots?.memory ?? 0,
    ...(slots?.most !== undefined && { mostSlots: slots.most }),
  };
}

export function allocationMessage(node: GpuNode, allocation: Allocation): AllocationMessage {
  const {
    id,
    name = '',
    gpus,
    memory,
    share,
    policy,
    priority,
    mode,
    limits,
    uid,
    createdAt,
    draining,
    owner,
    checkpoint,
    slots = [],
  } = allocation.specification;
  const { sessions, threads, handles, pinnedMemory } = limits;
  return {
    id,
    name,
    gpuUuids: gpus,
    memoryBytes: memory,
    sharePercent: share,
    policy: POLICIES[policy],
    priority,
    mode: MODES[mode],
    limits: { sessions, threads, handles, pinnedMemoryBytes: pinnedMemory },
    ...(uid === undefined ? {} : { uid }),
    ...{ createdAt, draining, suspended: allocation.suspended, socketPath: allocation.socketPath },
    ...{ state: MEMORY_STATES[allocation.state], outBytes: allocation.outBytes },
    checkpoint: checkpoint?.stage === 'file' ? checkpoint.directory : '',
    memoryUsedBytes: allocation.memoryUsed,
    peakMemoryBytes: allocation.peakMemory,
    time: node.timeOf(allocation),
    sessions: allocation.sessions.map(sessionMessage),
    ...(owner && { owner }),
    slots,
  };
}

/** An unbound grant has no GPU and no quota. */
function grantMessage({
  id,
  slots,
  createdAt,
}: Pick<Grant, 'id' | 'slots' | 'createdAt'>): AllocationMessage {
  return {
    id,
    name: '',
    gpuUuids: [],
    memoryBytes: 0,
    sharePercent: 0,
    policy: 'POLICY_UNSPECIFIED',
    priority: 0,
    mode: 'SHARING_MODE_UNSPECIFIED',
    limits: { sessions: 0, threads: 0, handles: 0, pinnedMemoryBytes: 0 },
    ...{ createdAt, draining: false, suspended: false, socketPath: '' },
    ...{ memoryUsedBytes: 0, peakMemoryBytes: 0, outBytes: 0, checkpoint: '' },
    state: 'MEMORY_STATE_UNSPECIFIED',
    time: { granted: 0, waited: 0, overrun: 0, windows: 0 },
    ...{ sessions: [], slots },
  };
}

function sessionMessage({ session: { record }, use }: LiveSession): SessionMessage {
  return {
    number: record.number,
    pid: record.client.pid,
    uid: record.client.uid,
    program: record.client.program,
    workerPid: record.worker.pid,
    startedAt: record.startedAt,
    memoryBytes: use.memory,
    peakMemoryBytes: use.peakMemory,
    contexts: use.contexts,
    launches: use.launches,
    bytesHostToDevice: use.bytesCopied.hostToDevice,
    bytesDeviceToHost: use.bytesCopied.deviceToHost,
    bytesDeviceToDevice: use.bytesCopied.deviceToDevice,
    faults: use.faults,
  };
}

/** 0, empty and unspecified mean: not requested. */
export function allocationRequest(message: CreateAllocationRequest): AllocationRequest {
  return {
    name: message.name || undefined,
    gpus: message.gpus,
    memory: message.memoryBytes,
    share: message.sharePercent || undefined,
    policy: policyOf(message.policy),
    priority: message.priority,
    mode: sharingModeOf(message.mode),
    latency: message.lowLatency ? 'low' : undefined,
    limits: limitsOf(message.limits ?? {}),
    holder: message.holderPid ? identifyProcess(message.holderPid) : undefined,
  };
}

function limitsOf({ sessions, pinnedMemoryBytes, threads, handles }: Partial<LimitsMessage>) {
  const asked = Object.entries({
    sessions,
    pinnedMemory: pinnedMemoryBytes,
    threads,
    handles,
  }).filter(([, limit]) => limit);
  return Object.fromEntries(asked);
}

function keyOf<Key extends string, Message>(
  table: Record<Key, Message>,
  message: unknown,
): Key | undefined {
  return (Object.keys(table) as Key[]).find((key) => table[key] === message);
}
