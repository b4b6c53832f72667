import { type ChildProcess, spawn } from 'node:child_process';
import type { GpuRecord } from '@nvidia-virtual/ledger';
import type { ProxyError } from '@nvidia-virtual/service/errors';
import { pino } from 'pino';
import { type NvmlReading, parseReading } from './nvml-monitor.js';
import { type CheckedAllocation, SecondCheck } from './second-check.js';

const MiB = 2 ** 20;
const GPU = { uuid: 'GPU-a', index: 0, contextMemory: 500 * MiB } as GpuRecord;
/** Includes the context and the margin of one session. */
const MOST = (1000 + 500 + 127) * MiB;
const NEVER = 4_000_000;

let ended: ProxyError[];
let said: string[];
let workers: { pid: number; contexts(): number }[];
let uid: number | undefined;
let present: boolean;
let most: number;
let check: SecondCheck;
const children: ChildProcess[] = [];

beforeEach(() => {
  ended = [];
  said = [];
  workers = [{ pid: NEVER, contexts: () => 1 }];
  uid = undefined;
  present = true;
  most = 1000 * MiB;
  const allocation = (): CheckedAllocation => ({
    specification: { id: 'abc', gpus: ['GPU-a'], memory: 1000 * MiB, mode: 'exclusive', uid },
    ...{ workers, most },
    end: (error) => ended.push(error),
  });
  check = new SecondCheck({
    gpus: [GPU],
    logger: pino({ base: null }, { write: (line: string) => void said.push(JSON.parse(line).msg) }),
    allocations: () => (present ? [allocation()] : []),
  });
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

function reading(...processes: { pid: number; memory: number; busy?: number }[]): NvmlReading {
  return parseReading(
    JSON.stringify({
      gpus: [{ uuid: 'GPU-a', processes: processes.map((one) => ({ busy: 0, ...one })) }],
    }),
  );
}

function take(memory: number, now = 0): void {
  check.take(reading({ pid: NEVER, memory }), now);
}

test('an allocation beyond its quota in two of four readings is ended once', () => {
  for (const memory of [MOST, MOST + 1, MOST]) take(memory);
  expect(ended).toEqual([]);
  for (const memory of [MOST + 1, MOST + 1, MOST + 1]) take(memory);
  expect(ended.map(({ code }) => code)).toEqual(['MEMORY_BEYOND_QUOTA']);
  expect(ended[0]?.message).toContain(
    'GPU 0 (GPU-a), more than the quota of 1000 MiB plus 627 MiB',
  );
});

test('an allocation that keeps memory which has left is ended, but not by older readings', () => {
  take(MOST);
  most = 100 * MiB;
  for (let time = 0; time < 4; time++) take(MOST);
  expect(ended).toEqual([]);
  for (let time = 0; time < 2; time++) take(MOST - 900 * MiB);
  for (let time = 0; time < 2; time++) take(MOST - 900 * MiB + 1);
  expect(ended.map(({ code }) => code)).toEqual(['MEMORY_KEPT']);
  expect(ended[0]?.message).toContain('of its memory 100 MiB have not left, plus 627 MiB');
});

test('a worker with the pid of an ended one is another worker, and is ended, too', () => {
  for (const memory of [MOST + 1, MOST + 1]) take(memory);
  workers = [...workers, { pid: NEVER + 1, contexts: () => 1 }];
  for (let time = 0; time < 4; time++)
    check.take(reading({ pid: NEVER, memory: MOST + 1 }, { pid: NEVER + 1, memory: MOST }));
  expect(ended).toHaveLength(1);
  for (let time = 0; time < 2; time++)
    check.take(reading({ pid: NEVER, memory: 1 }, { pid: NEVER + 1, memory: MOST + 1 }));
  expect(ended).toHaveLength(2);
});

test('a single reading ends no session', () => {
  for (let round = 0; round < 10; round++)
    for (const memory of [MOST + 1, MOST, MOST, MOST]) take(memory);
  expect(ended).toEqual([]);
});

test('a worker unknown to NVML is logged once, without further effect', () => {
  for (let time = 0; time < 5; time++) check.take(reading({ pid: 1, memory: 99_000 * MiB }));
  expect(ended).toEqual([]);
  expect(said).toEqual([expect.stringContaining('NVML does not know a worker that has a context')]);
});

test('a worker without a context is not reported as missing', () => {
  workers = [{ pid: NEVER, contexts: () => 0 }];
  for (let time = 0; time < 5; time++) check.take(reading());
  expect(said).toEqual([]);
});

test("any process of an allocation's user counts for it and is killed with it", async () => {
  const child = spawn('sleep', ['1000']);
  children.push(child);
  const gone = new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)));
  uid = process.getuid?.();
  const pid = child.pid as number;
  for (let time = 0; time < 2; time++)
    check.take(reading({ pid: NEVER, memory: 600 * MiB }, { pid, memory: 2000 * MiB }));
  expect(ended).toHaveLength(1);
  expect(await gone).toBe('SIGKILL');
});

test('the busy time of an allocation by NVML covers the last minute', () => {
  expect(check.busyRatio('abc', 'GPU-a', 0)).toBeUndefined();
  for (let now = 0; now <= 10_000; now += 250)
    check.take(reading({ pid: NEVER, memory: 0, busy: 125_000 }), now);
  expect(check.busyRatio('abc', 'GPU-a', 10_000)).toBeCloseTo(0.5, 1);
  expect(check.busyRatio('abc', 'GPU-b', 10_000)).toBe(0);
  expect(check.busyRatio('abc', 'GPU-a', 80_000)).toBe(0);
});

test('readings continue for a while after the last session', () => {
  present = false;
  const wanted = Array.from({ length: 41 }, () => check.take(reading()));
  expect([wanted[0], wanted.at(-1)]).toEqual([true, false]);
});
