import type { GpuRecord } from '@nvidia-virtual/ledger';
import { sessionRecord, sessionUse } from '../testing/node-snapshot.js';
import { compareMemory, holdingsOf, marginOf } from './device-memory.js';
import { parseReading } from './nvml-monitor.js';

const MiB = 2 ** 20;
const CONTEXT = 500 * MiB;
const [A, B] = ['a', 'b'].map(
  (name) => ({ uuid: `GPU-${name}`, contextMemory: CONTEXT }) as GpuRecord,
);
const GPUS = [A, B] as GpuRecord[];

/** The slot equals the number; the worker's pid is the number plus 200. */
function session(number: number, memory: number) {
  return { record: sessionRecord(number), use: sessionUse(0, memory) };
}

function reported(...processes: [pid: number, gpu: string, memory: number][]) {
  const gpus = [...new Set(processes.map(([, gpu]) => gpu))].map((uuid) => ({
    uuid,
    processes: processes
      .filter(([, gpu]) => gpu === uuid)
      .map(([pid, , memory]) => ({ pid, memory, busy: 0 })),
  }));
  return parseReading(JSON.stringify({ gpus }));
}

test('charged memory and the reserved context are accounted for', () => {
  const one = { specification: { gpus: ['GPU-a'] }, sessions: [session(0, 100 * MiB)] };
  expect(compareMemory(one, GPUS, reported([200, 'GPU-a', CONTEXT + 100 * MiB]))).toEqual({
    reported: CONTEXT + 100 * MiB,
    unaccounted: 0,
  });
  expect(compareMemory(one, GPUS, reported([200, 'GPU-a', CONTEXT + 107 * MiB]))?.unaccounted).toBe(
    7 * MiB,
  );
  expect(compareMemory(one, GPUS, reported([200, 'GPU-a', CONTEXT + 90 * MiB]))?.unaccounted).toBe(
    -10 * MiB,
  );
});

test('a further session is charged for one context, not for that of a second GPU', () => {
  const further = {
    specification: { gpus: ['GPU-a', 'GPU-b'] },
    sessions: [session(0, 0), session(1, CONTEXT + 5 * MiB)],
  };
  const processes = reported(
    [200, 'GPU-a', CONTEXT],
    [201, 'GPU-a', CONTEXT + 5 * MiB],
    [201, 'GPU-b', CONTEXT + 3 * MiB],
  );
  expect(compareMemory(further, GPUS, processes)).toEqual({
    reported: 3 * CONTEXT + 8 * MiB,
    unaccounted: 3 * MiB,
  });
});

test('sessions unknown to NVML are skipped; without others there is no value', () => {
  const two = {
    specification: { gpus: ['GPU-a'] },
    sessions: [session(0, 0), session(1, 999 * MiB)],
  };
  expect(compareMemory(two, GPUS, reported([200, 'GPU-a', CONTEXT]))?.unaccounted).toBe(0);
  expect(compareMemory(two, GPUS, reported([7, 'GPU-a', CONTEXT]))).toBeUndefined();
});

test('an allocation may hold its quota, one context, and a margin for each session', () => {
  const processes = reported(
    [1, 'GPU-a', 600 * MiB],
    [2, 'GPU-a', 700 * MiB],
    [3, 'GPU-a', 9000 * MiB],
  );
  const [a, b] = holdingsOf({ gpus: ['GPU-a'], memory: 2000 * MiB }, [1, 2], GPUS, processes);
  expect(marginOf(A as GpuRecord)).toBe(127 * MiB);
  expect(a).toEqual({ gpu: A, held: 1300 * MiB, allowed: (2000 + 500 + 2 * 127) * MiB });
  expect(b).toMatchObject({ held: 0 });
});

test('a session that cannot have been charged to the quota has no margin', () => {
  const processes = reported(
    ...[1, 2, 3].map((pid) => [pid, 'GPU-a', MiB] as [number, string, number]),
  );
  const [a] = holdingsOf({ gpus: ['GPU-a'], memory: 600 * MiB }, [1, 2, 3], GPUS, processes);
  expect(a?.allowed).toBe((600 + 500 + 2 * 127) * MiB);
});

test('a session has a context on each GPU; a GPU that was not granted has no quota', () => {
  const processes = reported([1, 'GPU-a', MiB], [2, 'GPU-a', MiB], [1, 'GPU-b', 900 * MiB]);
  const both = holdingsOf(
    { gpus: ['GPU-a', 'GPU-b'], memory: 2000 * MiB },
    [1, 2],
    GPUS,
    processes,
  );
  expect(both.map(({ allowed }) => allowed)).toEqual([
    (2000 + 2 * 500 + 2 * 127) * MiB,
    (2000 + 500 + 127) * MiB,
  ]);
  const [, other] = holdingsOf({ gpus: ['GPU-a'], memory: 2000 * MiB }, [1], GPUS, processes);
  expect(other).toEqual({ gpu: B, held: 900 * MiB, allowed: (500 + 127) * MiB });
  const moving = { gpus: ['GPU-a'], moving: 'GPU-b', memory: 2000 * MiB };
  const [, second] = holdingsOf(moving, [1], GPUS, processes);
  expect(second).toEqual({ gpu: B, held: 900 * MiB, allowed: (2000 + 500 + 127) * MiB });
});
