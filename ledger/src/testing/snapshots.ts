import type { AllocationSpecification, NodeSnapshot } from '../records.js';

interface SnapshotShape {
  readonly node?: string;
  readonly gpus?: readonly string[];
  readonly allocations?: number;
  /** Sessions per allocation. */
  readonly sessions?: number;
  /** Device memory used by each session. */
  readonly memory?: number;
}

/** A deterministic snapshot of this shape. */
export function snapshot({
  node = 'node-1',
  gpus = ['GPU-1'],
  allocations = 2,
  sessions = 3,
  memory = 2 ** 20,
}: SnapshotShape = {}): NodeSnapshot {
  return {
    node,
    gpus: gpus.map((uuid, index) => ({
      uuid,
      index,
      name: 'Simulated GPU',
      memory: 8 * 2 ** 30,
      contextMemory: 2 ** 29,
      mode: 'exclusive',
    })),
    allocations: numbers(allocations).map((index) => {
      const specification = allocation(index, gpus);
      return {
        specification,
        time: { granted: 1000, waited: 10, overrun: 1, windows: 5 },
        state: 'resident',
        outBytes: 0,
        sessions: numbers(sessions).map((number) => session(specification.id, number, memory)),
      };
    }),
  };
}

type Session = NodeSnapshot['allocations'][number]['sessions'][number];

export function sessionsOf(...snapshots: readonly NodeSnapshot[]): Session[] {
  return snapshots.flatMap(({ allocations }) => allocations.flatMap(({ sessions }) => sessions));
}

function allocation(index: number, gpus: readonly string[]): AllocationSpecification {
  return {
    version: 1,
    id: index.toString(16).padStart(16, '0'),
    name: index % 2 === 0 ? undefined : `tenant ${index} "ä"`,
    gpus,
    memory: 2 ** 30,
    share: 25,
    policy: 'burst',
    priority: 0,
    mode: 'exclusive',
    limits: { sessions: 64, pinnedMemory: 2 ** 30, threads: 256, handles: 65_536 },
    uid: undefined,
    createdAt: new Date(1_700_000_000_000 + index * 1000).toISOString(),
    draining: false,
  };
}

function session(allocation: string, number: number, memory: number): Session {
  const client = {
    pid: 1000 + number,
    startTime: String(5000 + number),
    program: '/usr/bin/python3',
    uid: 1000,
  };
  const worker = { pid: 2000 + number, startTime: String(6000 + number) };
  return {
    record: {
      version: 1,
      number,
      allocation,
      client,
      worker,
      slot: number,
      startedAt: new Date(1_700_000_100_000).toISOString(),
    },
    use: {
      memory,
      peakMemory: memory,
      contexts: 1,
      launches: 100,
      bytesCopied: { hostToDevice: 1, deviceToHost: 2, deviceToDevice: 3 },
      faults: 0,
    },
  };
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}
