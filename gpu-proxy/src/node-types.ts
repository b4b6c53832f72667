import type { AllocationSpecification, GpuRecord, Limits, Owner } from '@nvidia-virtual/ledger';
import type { RequestedSpecification } from '@nvidia-virtual/node-state/specification';
import type { UidRange } from '@nvidia-virtual/service/configuration/kinds';
import type { ProxyError } from '@nvidia-virtual/service/errors';
import type { ProcessIdentity } from '@nvidia-virtual/service/process-table';
import type { LastFigures } from './allocations/allocation-host.js';
import type { ClientSocket } from './allocations/client-socket.js';
import type { XidReport } from './gpus/xids.js';
import type { Session } from './sessions/session.js';

/** Settings that can change while a node runs. */
export interface NodeSettings {
  /** Default limits of new allocations. */
  readonly limits: Limits;
  /** The number of warm workers of a GPU; each holds a context. */
  warmWorkers(gpu: GpuRecord): number;
  /** Length of a window in microseconds while several allocations compete. */
  readonly window: number;
  /** Microseconds that work may overrun its window while others wait; 0: no limit. */
  readonly overrunLimit: number;
  /** Percent of its share that an allocation keeps beside higher priorities. */
  readonly guaranteedShare: number;
  /** Allocations may move between GPUs of the same model, and their workers see all of these. */
  readonly movable: boolean;
  /** Managed memory moves to the GPU; programs get userfaultfd for that. */
  readonly movesManaged: boolean;
  /**
   * Limit in bytes on host memory for the GPU memory of suspended sessions; 0: it stays on the GPU;
   * undefined: half of the node's memory.
   */
  readonly hostMemory?: number | undefined;
  /** Bytes of host memory for all slots of oversubscribed GPUs, which pods may request. */
  readonly slotsHostMemory?: number;
  /** Limit on the quotas of a GPU as a multiple of its memory; 1: it is not oversubscribed. */
  oversubscription(gpu: GpuRecord): number;
  /** User ids of workers, one for each allocation; by default the node's user. */
  readonly users?: UidRange | undefined;
}

/** A request for an allocation. */
export interface AllocationRequest extends RequestedSpecification {
  /** Indices or UUIDs; empty: the node chooses one. */
  readonly gpus?: readonly string[] | undefined;
  /** Bytes on each GPU; 0: all remaining memory. */
  readonly memory?: number | undefined;
  /** The allocation is drained after the exit of this process. */
  readonly holder?: ProcessIdentity | undefined;
  /** Path of its socket, if outside its directory. */
  readonly socketPath?: string | undefined;
  readonly owner?: Owner | undefined;
  /** The annotation of its pod suspends it from the beginning. */
  readonly suspended?: boolean | undefined;
  /** The grant that becomes this allocation. */
  readonly grant?: BindableGrant | undefined;
}

/** A served grant that can become an allocation. */
export interface BindableGrant {
  readonly id: string;
  readonly slots: readonly string[];
  readonly socket: ClientSocket;
}

interface EndedSession extends LastFigures {
  readonly session: Session;
}

export interface NodeEvents {
  /** An allocation or a session was added, changed or removed. */
  changed: [];
  /** A session started with a warm or cold worker. Not emitted for sessions taken over. */
  sessionStarted: [worker: 'warm' | 'cold'];
  sessionEnded: [EndedSession];
  /** The memory of an allocation left the GPU, or came back. */
  moved: [how: 'leaving' | 'entering', seconds: number];
  /** A user suspended an allocation, or no user suspends it any more. */
  suspensionChanged: [allocation: AllocationSpecification];
  arbiterRestarted: [];
  mpsRestarted: [];
  /** Its sessions were killed, because the driver reports memory use above the quota. */
  beyondQuota: [allocation: AllocationSpecification];
  /** The driver reported an Xid. */
  xid: [report: XidReport];
  /** An error to report to the user of an allocation. */
  trouble: [allocation: AllocationSpecification, error: ProxyError];
  /** An allocation became a grant again. The listener must serve its socket. */
  unbound: [id: string, socket: ClientSocket];
}
