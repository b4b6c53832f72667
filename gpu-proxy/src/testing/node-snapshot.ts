import type {
  AllocationSpecification,
  NodeSnapshot,
  SessionRecord,
  SessionUse,
  TimeUse,
} from '@nvidia-virtual/ledger';

export const GPU = 'GPU-01234567-89ab-cdef-0123-456789abcdef';
export const ALLOCATION = '00112233aabbccdd';

export const SPECIFICATION: AllocationSpecification = {
  version: 1,
  id: ALLOCATION,
  name: 'training/job',
  gpus: [GPU],
  memory: 2 ** 30,
  share: 25,
  policy: 'burst',
  priority: 0,
  mode: 'exclusive',
  limits: { sessions: 8, pinnedMemory: 2 ** 30, threads: 64, handles: 1024 },
  uid: undefined,
  createdAt: '2026-01-01T00:00:00.000Z',
  draining: false,
};

export function sessionRecord(number: number, allocation = ALLOCATION): SessionRecord {
  const client = { pid: 100 + number, startTime: '1', program: '/bin/program', uid: 1000 };
  return {
    version: 1,
    number,
    allocation,
    client,
    worker: { pid: 200 + number, startTime: '1' },
    slot: number,
    startedAt: SPECIFICATION.createdAt,
  };
}

/** Every counter is `count`. */
export function sessionUse(count: number, memory = 0): SessionUse {
  const bytesCopied = { hostToDevice: count, deviceToHost: count, deviceToDevice: count };
  return { memory, peakMemory: memory, contexts: 1, launches: count, bytesCopied, faults: count };
}

interface Parts {
  readonly specification?: Partial<AllocationSpecification>;
  readonly time?: Partial<TimeUse>;
  readonly sessions?: readonly { readonly record: SessionRecord; readonly use: SessionUse }[];
}

/** A node with one GPU and one allocation per argument. */
export function nodeSnapshot(...allocations: readonly Parts[]): NodeSnapshot {
  return {
    node: 'node-1',
    gpus: [
      {
        uuid: GPU,
        index: 0,
        name: 'Simulated GPU',
        memory: 8 * 2 ** 30,
        contextMemory: 2 ** 29,
        mode: 'exclusive',
      },
    ],
    allocations: allocations.map(({ specification, time, sessions = [] }) => ({
      specification: { ...SPECIFICATION, ...specification },
      time: { granted: 0, waited: 0, overrun: 0, windows: 0, ...time },
      state: 'resident',
      outBytes: 0,
      sessions,
    })),
  };
}
