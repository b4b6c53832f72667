import {
  type AllocationSpecification,
  type GpuRecord,
  type MemoryState,
  type TimeUse,
  usedTime,
} from '@nvidia-virtual/ledger/records';
import type { Refusals } from '../allocations/closer.js';
import type { ReportedMemory } from '../gpus/device-memory.js';
import { xidFact } from '../gpus/xids.js';
import type { RoundTrips, Totals } from './totals.js';

/** Source of the metrics of one GPU. */
interface GpuFigures extends GpuRecord {
  readonly warmWorkers: number;
  /** The largest possible quota of a new allocation, in bytes. */
  readonly memoryLeft: number;
  /** 0 if the GPU is not oversubscribed. */
  readonly exchangingRatio: number;
  /** Occurrences by number. */
  readonly xids: ReadonlyMap<number, number>;
}

interface AllocationFigures {
  readonly specification: AllocationSpecification;
  /** Bytes in use by its sessions. */
  readonly memory: number;
  readonly state: MemoryState;
  /** Bytes in host memory. */
  readonly outBytes: number;
  /** Undefined if NVML does not report it. */
  readonly reportedMemory: ReportedMemory | undefined;
  readonly sessions: number;
  readonly contexts: number;
  readonly time: TimeUse;
  readonly totals: Totals;
}

export interface NodeFigures {
  readonly gpus: readonly GpuFigures[];
  readonly allocations: readonly AllocationFigures[];
  readonly ledgerConnected: boolean;
  /** Undefined outside of Kubernetes. */
  readonly podsFollowed: boolean | undefined;
  readonly refusals: Readonly<Refusals>;
  /** Bytes of host memory for the GPU memory of suspended allocations. */
  readonly hostMemory: { readonly used: number; readonly limit: number };
}

type Labels = Readonly<Record<string, string | number>>;

interface Described {
  /** Follows the conventions of Prometheus: the unit at the end, `_total` for a counter. */
  readonly name: string;
  readonly help: string;
  /** Labels in addition to those of the group. */
  readonly labels?: readonly string[];
}

/**
 * One metric of a subject: its value, or one value for each combination of its own labels, or the
 * buckets of a histogram.
 */
export type Definition<Subject> = Described &
  (
    | {
        readonly type: 'gauge' | 'counter';
        readonly read: (subject: Subject) => number | readonly (readonly [Labels, number])[];
      }
    | { readonly type: 'histogram'; readonly read: (subject: Subject) => RoundTrips }
  );

const SECOND = 1e9;

export const NODE_METRICS: readonly Definition<NodeFigures>[] = [
  {
    type: 'gauge',
    name: 'nvidia_virtual_ledger_connected',
    help:
      '1 while the ledger is written, 0 while its Redis is away or another gpu-proxy keeps this ' +
      'node or one of its GPUs there.',
    read: ({ ledgerConnected }) => Number(ledgerConnected),
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_pods_followed',
    help:
      '1 while the API server lists the pods of the node, 0 while it does not answer. ' +
      'Absent outside of Kubernetes.',
    read: ({ podsFollowed }) => (podsFollowed === undefined ? [] : Number(podsFollowed)),
  },
  {
    type: 'counter',
    name: 'nvidia_virtual_connections_refused_total',
    help:
      'Programs that got no GPU, by reason: pod (its allocation is full, is draining, or belongs ' +
      'to another container) or node (all else).',
    labels: ['reason'],
    read: ({ refusals: { pod, node } }) => [
      [{ reason: 'pod' }, pod],
      [{ reason: 'node' }, node],
    ],
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_host_memory_used_bytes',
    help:
      'Host memory for the GPU memory of suspended allocations. It stays reserved after a ' +
      'resumption, until other allocations need it.',
    read: ({ hostMemory }) => hostMemory.used,
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_host_memory_limit_bytes',
    help: 'The limit on it. 0: GPU memory does not leave.',
    read: ({ hostMemory }) => hostMemory.limit,
  },
];

export const GPU_METRICS: readonly Definition<GpuFigures>[] = [
  {
    type: 'counter',
    name: 'nvidia_virtual_gpu_xid_errors_total',
    help:
      'Xids that the driver reported while programs used GPUs. consequence: program (a program ' +
      'caused it), probe (a test worker decides about the GPU), reset (the GPU cannot be used ' +
      'until it is reset).',
    labels: ['xid', 'consequence'],
    read: ({ xids }) =>
      [...xids].map(([xid, count]) => [{ xid, consequence: xidFact(xid).consequence }, count]),
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_gpu_info',
    help: 'Always 1; the labels say what the GPU is, and in which mode it is shared.',
    labels: ['index', 'model', 'mode'],
    read: ({ index, name, mode }) => [[{ index, model: name, mode }, 1]],
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_gpu_memory_bytes',
    help: 'Memory of the GPU.',
    read: ({ memory }) => memory,
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_gpu_context_memory_bytes',
    help:
      'What one context holds before anything is allocated. ' +
      'Each allocation has one free of charge; each warm worker holds one.',
    read: ({ contextMemory }) => contextMemory,
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_gpu_memory_left_bytes',
    help: 'The largest memory quota that a new allocation could still get.',
    read: ({ memoryLeft }) => memoryLeft,
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_gpu_exchanging_ratio',
    help:
      'The part of the last five minutes during which memory left an oversubscribed GPU or came ' +
      'back; 0 on other GPUs.',
    read: ({ exchangingRatio }) => exchangingRatio,
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_gpu_warm_workers',
    help: 'Workers that wait with a context ready.',
    read: ({ warmWorkers }) => warmWorkers,
  },
];

export const ALLOCATION_METRICS: readonly Definition<AllocationFigures>[] = [
  {
    type: 'gauge',
    name: 'nvidia_virtual_allocation_info',
    help:
      'Always 1; the labels say how the allocation is scheduled, and whether it takes new ' +
      'sessions.',
    labels: ['policy', 'priority', 'mode', 'draining'],
    read: ({ specification: { policy, priority, mode, draining } }) => [
      [{ policy, priority, mode, draining: String(draining) }, 1],
    ],
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_allocation_memory_used_bytes',
    help: 'Device memory that the sessions have, as the quota counts it.',
    read: ({ memory }) => memory,
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_allocation_memory_out_bytes',
    help: 'The part of that which is in host memory, because the allocation is suspended.',
    read: ({ outBytes }) => outBytes,
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_allocation_memory_state',
    help: 'Always 1; the label says where the device memory is: resident, leaving, out, entering.',
    labels: ['state'],
    read: ({ state }) => [[{ state }, 1]],
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_allocation_memory_reported_bytes',
    help:
      'Device memory that NVML reports for the workers, including contexts. ' +
      "Absent without NVML, and if gpu-proxy is outside of the host's pid namespace.",
    read: ({ reportedMemory }) => (reportedMemory ? [[{}, reportedMemory.reported]] : []),
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_allocation_memory_unaccounted_bytes',
    help:
      'The part of that which neither the quota counts nor the node provides. ' +
      'Some MiB are usual; growth is memory beyond the quota.',
    read: ({ reportedMemory }) => (reportedMemory ? [[{}, reportedMemory.unaccounted]] : []),
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_allocation_sessions',
    help: 'Processes that use the GPU now.',
    read: ({ sessions }) => sessions,
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_allocation_sessions_limit',
    help: 'How many processes may use the GPU at a time.',
    read: ({ specification }) => specification.limits.sessions,
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_allocation_contexts',
    help: 'CUDA contexts that exist now.',
    read: ({ contexts }) => contexts,
  },
  {
    type: 'counter',
    name: 'nvidia_virtual_allocation_waiting_seconds_total',
    help: 'Time for which work waited for its turn on the GPU.',
    read: ({ time }) => time.waited / SECOND,
  },
  {
    type: 'counter',
    name: 'nvidia_virtual_allocation_overrun_seconds_total',
    help:
      'Time that work took beyond the end of its turns. It is charged, and part of ' +
      'nvidia_virtual_allocation_used_seconds_total.',
    read: ({ time }) => time.overrun / SECOND,
  },
  {
    type: 'counter',
    name: 'nvidia_virtual_allocation_windows_total',
    help: 'Turns on the GPU.',
    read: ({ time }) => time.windows,
  },
  {
    type: 'counter',
    name: 'nvidia_virtual_allocation_kernels_launched_total',
    help: 'Kernels launched.',
    read: ({ totals }) => totals.launches,
  },
  {
    type: 'counter',
    name: 'nvidia_virtual_allocation_copied_bytes_total',
    help: 'Bytes copied, by direction: host_to_device, device_to_host, device_to_device.',
    labels: ['direction'],
    read: ({ totals: { bytesCopied } }) => [
      [{ direction: 'host_to_device' }, bytesCopied.hostToDevice],
      [{ direction: 'device_to_host' }, bytesCopied.deviceToHost],
      [{ direction: 'device_to_device' }, bytesCopied.deviceToDevice],
    ],
  },
  {
    type: 'counter',
    name: 'nvidia_virtual_allocation_faults_total',
    help: 'Contexts lost to a fault of the program, such as an illegal address.',
    read: ({ totals }) => totals.faults,
  },
  {
    type: 'histogram',
    name: 'nvidia_virtual_allocation_round_trip_seconds',
    help:
      'Time in the worker from reading a call to answering it. ' +
      'Every 64th call is timed and counts for 64. The sum uses the middles of the buckets.',
    read: ({ totals }) => totals.roundTrips,
  },
];

interface AllocationOnGpu extends AllocationFigures {
  readonly gpu: string;
  /** Undefined if NVML does not report it. */
  readonly reportedBusy: number | undefined;
}

export const ALLOCATION_ON_GPU_METRICS: readonly Definition<AllocationOnGpu>[] = [
  {
    type: 'gauge',
    name: 'nvidia_virtual_allocation_memory_quota_bytes',
    help: 'Memory quota on this GPU; 0: none.',
    read: ({ specification }) => specification.memory,
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_allocation_share_ratio',
    help: "The part of the GPU's time that was asked for, 0 to 1.",
    read: ({ specification }) => specification.share / 100,
  },
  {
    type: 'counter',
    name: 'nvidia_virtual_allocation_used_seconds_total',
    help:
      'Time of this GPU that the allocation had: its turns, and its work beyond their end. ' +
      'The rate is its actual share. An allocation has all of its GPUs at the same time.',
    read: ({ time }) => usedTime(time) / SECOND,
  },
  {
    type: 'gauge',
    name: 'nvidia_virtual_allocation_reported_busy_ratio',
    help:
      'The part of the last minute, 0 to 1, in which kernels of the workers ran on this GPU, ' +
      'by NVML. Far more than the rate of nvidia_virtual_allocation_used_seconds_total was not ' +
      'granted.',
    read: ({ reportedBusy }) => (reportedBusy === undefined ? [] : [[{}, reportedBusy]]),
  },
];

/**
 * Same names as in other exporters of GPU metrics, so that queries by pod work. Empty for an
 * allocation without a pod.
 */
const OWNER_LABELS = ['namespace', 'pod', 'container'] as const;

/** The groups, with the labels that all metrics of a group have. All have `node` as well. */
export const LABELS = {
  node: [],
  gpu: ['gpu'],
  allocation: ['allocation', 'name', ...OWNER_LABELS],
  allocationOnGpu: ['allocation', 'name', ...OWNER_LABELS, 'gpu'],
} as const;
