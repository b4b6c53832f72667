import type { NodeSnapshot } from '@nvidia-virtual/ledger';
import { type Family, parseExposition } from '../testing/exposition.js';
import {
  ALLOCATION,
  GPU,
  nodeSnapshot,
  sessionRecord,
  sessionUse,
} from '../testing/node-snapshot.js';
import { allMetrics } from './list.js';
import { Metrics, type MetricsSource } from './metrics.js';

const NAME = 'a "name"\\with\nall';

function sourceOf(
  snapshot: MetricsSource['snapshot'],
  roundTrips: readonly number[] = [],
): MetricsSource {
  const memory = { reported: 3e9, unaccounted: -5 };
  return {
    ...{ snapshot, roundTrips: () => roundTrips, warmWorkers: () => 2, memoryLeft: () => 5e9 },
    exchangingRatio: () => 0.125,
    ...{ ledgerConnected: () => true, podsFollowed: () => true },
    refusals: () => ({ pod: 1, node: 2 }),
    hostMemory: () => ({ used: 3, limit: 9 }),
    xids: () => new Map([[79, 2]]),
    reportedBusy: () => 0.25,
    reportedMemory: ({ sessions }) => (sessions.length > 0 ? memory : undefined),
  };
}

async function expose(
  snapshot: NodeSnapshot,
  roundTrips?: readonly number[],
): Promise<Map<string, Family>> {
  return parseExposition(
    await new Metrics(
      'node-1',
      sourceOf(() => snapshot, roundTrips),
    ).exposition(),
  );
}

function valuesOf(families: ReadonlyMap<string, Family>, name: string): [object, number][] {
  return (families.get(`nvidia_virtual_${name}`)?.samples ?? []).map(({ labels, value }) => [
    labels,
    value,
  ]);
}

const FULL = nodeSnapshot({
  specification: { name: NAME, gpus: [GPU, 'GPU-2'] },
  time: { granted: 2.5e9, waited: 1e6, overrun: 3e9, windows: 4 },
  sessions: [
    { record: sessionRecord(1), use: sessionUse(10, 1000) },
    { record: sessionRecord(2), use: sessionUse(1, 24) },
  ],
});

test('the exposition has exactly the declared metrics, each with its labels', async () => {
  const families = await expose(FULL, [1]);
  expect([...families.keys()].sort()).toEqual(
    allMetrics()
      .map(({ name }) => name)
      .sort(),
  );
  for (const { name, type, help, labels } of allMetrics()) {
    const family = families.get(name);
    expect([name, family?.type, family?.help]).toEqual([name, type, help]);
    expect(family?.samples.length).toBeGreaterThan(0);
    for (const sample of family?.samples ?? [])
      expect(
        [name, ...Object.keys(sample.labels).filter((label) => label !== 'le')].sort(),
      ).toEqual([name, 'node', ...labels].sort());
  }
});

test('names follow the conventions of Prometheus', () => {
  for (const { name, type, help } of allMetrics()) {
    expect(name).toMatch(/^nvidia_virtual(_[a-z]+)+$/);
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    expect([name, /[.]$/.test(help)]).toEqual([name, true]);
  }
});

test('values of NVML are exposed if NVML provides them', async () => {
  const values = (families: ReadonlyMap<string, Family>) =>
    ['reported', 'unaccounted'].map((which) =>
      valuesOf(families, `allocation_memory_${which}_bytes`).map(([, value]) => value),
    );
  expect(values(await expose(FULL))).toEqual([[3e9], [-5]]);
  expect(values(await expose(nodeSnapshot({})))).toEqual([[], []]);
});

test('metrics of an allocation', async () => {
  const families = await expose(FULL);
  const own = {
    node: 'node-1',
    allocation: ALLOCATION,
    name: NAME,
    namespace: '',
    pod: '',
    container: '',
  };
  const [first, second] = [
    { ...own, gpu: GPU },
    { ...own, gpu: 'GPU-2' },
  ];
  expect(valuesOf(families, 'allocation_memory_quota_bytes')).toEqual([
    [first, 2 ** 30],
    [second, 2 ** 30],
  ]);
  expect(valuesOf(families, 'allocation_share_ratio')[0]).toEqual([first, 0.25]);
  expect(valuesOf(families, 'allocation_used_seconds_total')[1]).toEqual([second, 5.5]);
  expect(valuesOf(families, 'allocation_waiting_seconds_total')).toEqual([[own, 0.001]]);
  expect(valuesOf(families, 'allocation_overrun_seconds_total')).toEqual([[own, 3]]);
  expect(valuesOf(families, 'allocation_windows_total')).toEqual([[own, 4]]);
  expect(valuesOf(families, 'allocation_memory_used_bytes')).toEqual([[own, 1024]]);
  expect(valuesOf(families, 'allocation_sessions')).toEqual([[own, 2]]);
  expect(valuesOf(families, 'allocation_contexts')).toEqual([[own, 2]]);
  expect(valuesOf(families, 'allocation_kernels_launched_total')).toEqual([[own, 11]]);
  expect(valuesOf(families, 'allocation_copied_bytes_total')).toContainEqual([
    { ...own, direction: 'device_to_host' },
    11,
  ]);
  expect(valuesOf(families, 'allocation_info')).toEqual([
    [{ ...own, policy: 'burst', priority: '0', mode: 'exclusive', draining: 'false' }, 1],
  ]);
});

test('metrics of memory that is out', async () => {
  const [allocation, ...others] = FULL.allocations;
  const out = { ...allocation, state: 'out', outBytes: 1000 } as typeof allocation;
  const families = await expose({
    ...FULL,
    allocations: [out, ...others] as typeof FULL.allocations,
  });
  const values = (name: string) => valuesOf(families, name).map(([, value]) => value);
  expect(values('allocation_memory_out_bytes')).toEqual([1000]);
  expect(valuesOf(families, 'allocation_memory_state')).toEqual([
    [expect.objectContaining({ allocation: ALLOCATION, state: 'out' }), 1],
  ]);
  expect([...values('host_memory_used_bytes'), ...values('host_memory_limit_bytes')]).toEqual([
    3, 9,
  ]);
});

test('number 19: an allocation has labels of namespace, pod and container, once', async () => {
  const owner = { namespace: 'team', pod: 'train-0', podUid: 'u', container: 'main' };
  const families = await expose(nodeSnapshot({ specification: { owner } }));
  for (const { name, labels } of allMetrics().filter((metric) =>
    metric.labels.includes('allocation'),
  )) {
    expect(labels).toEqual(expect.arrayContaining(['namespace', 'pod', 'container']));
    for (const sample of families.get(name)?.samples ?? [])
      expect(sample.labels).toMatchObject({ namespace: 'team', pod: 'train-0', container: 'main' });
  }
  expect(valuesOf(families, 'allocation_memory_quota_bytes')).toHaveLength(1);
});

test('metrics of a GPU', async () => {
  const families = await expose(nodeSnapshot());
  const gpu = { node: 'node-1', gpu: GPU };
  expect(valuesOf(families, 'gpu_info')).toEqual([
    [{ ...gpu, index: '0', model: 'Simulated GPU', mode: 'exclusive' }, 1],
  ]);
  expect(valuesOf(families, 'gpu_memory_left_bytes')).toEqual([[gpu, 5e9]]);
  expect(valuesOf(families, 'gpu_warm_workers')).toEqual([[gpu, 2]]);
  expect(valuesOf(families, 'gpu_xid_errors_total')).toEqual([
    [{ ...gpu, xid: '79', consequence: 'reset' }, 2],
  ]);
  expect(valuesOf(families, 'allocation_sessions')).toEqual([]);
});

test('round trips of all sessions are one histogram', async () => {
  const roundTrips = Array<number>(32).fill(0);
  Object.assign(roundTrips, { 0: 64, 12: 128, 31: 64 });
  const families = await expose(FULL, roundTrips);
  const samples = families.get('nvidia_virtual_allocation_round_trip_seconds')?.samples ?? [];
  const buckets = samples
    .filter(({ name }) => name.endsWith('_bucket'))
    .map(({ labels, value }) => [Number(labels['le']), value]);
  const [first, last] = [2 ** 10 / 1e9, 2 ** 30 / 1e9];
  expect(
    buckets.filter(
      ([le]) => le === first || le === 2 ** 12 / 1e9 || le === 2 ** 13 / 1e9 || le === last,
    ),
  ).toEqual([
    [first, 128],
    [2 ** 12 / 1e9, 128],
    [2 ** 13 / 1e9, 384],
    [last, 384],
  ]);
  expect(buckets.map(([le]) => le)).toEqual(
    [...buckets.map(([le]) => le as number)].sort((a, b) => a - b),
  );
  expect(buckets.at(-1)?.[1]).toBe(512);
  const rest = samples.filter(({ name }) => !name.endsWith('_bucket')).map(({ value }) => value);
  expect(rest[0]).toBeCloseTo((2 * (64 * 1.5 + 128 * 1.5 * 2 ** 12 + 64 * 1.5 * 2 ** 31)) / 1e9);
  expect(rest[1]).toBe(512);
});

test('events are counted, and ended sessions still count for their allocation', async () => {
  const metrics = new Metrics(
    'node-1',
    sourceOf(() => nodeSnapshot({})),
  );
  metrics.events.sessionStarted('warm');
  metrics.events.workerGone(0.02);
  metrics.events.moved('leaving', 2);
  metrics.events.arbiterRestarted();
  metrics.sessionEnded('worker_died', sessionRecord(1), sessionUse(3), []);
  const families = parseExposition(await metrics.exposition());
  const node = { node: 'node-1' };
  expect(valuesOf(families, 'sessions_started_total')).toEqual([
    [{ ...node, worker: 'warm' }, 1],
    [{ ...node, worker: 'cold' }, 0],
  ]);
  expect(valuesOf(families, 'sessions_ended_total')).toContainEqual([
    { ...node, cause: 'worker_died' },
    1,
  ]);
  expect(valuesOf(families, 'arbiter_restarts_total')).toEqual([[node, 1]]);
  expect(valuesOf(families, 'worker_gone_seconds')).toContainEqual([{ ...node, le: '0.03' }, 1]);
  expect(valuesOf(families, 'memory_leaving_seconds')).toContainEqual([{ ...node, le: '3' }, 1]);
  expect(valuesOf(families, 'memory_entering_seconds')).toContainEqual([{ ...node, le: '3' }, 0]);
  expect(valuesOf(families, 'allocation_kernels_launched_total')[0]?.[1]).toBe(3);
});

test('concurrent scrapes share one answer, and a failed source is read again', async () => {
  let asked = 0;
  const metrics = new Metrics(
    'node-1',
    sourceOf(() => {
      if (++asked === 1) throw new Error('not yet');
      return nodeSnapshot();
    }),
  );
  await expect(metrics.exposition()).rejects.toThrow('not yet');
  const [first, second] = await Promise.all([metrics.exposition(), metrics.exposition()]);
  expect(first).toBe(second);
  expect(asked).toBe(2);
});

test('without a scraper, removed allocations are forgotten, too', async () => {
  let metrics: Metrics | undefined;
  await new Promise<void>((resolve) => {
    const snapshot = () => {
      resolve();
      return nodeSnapshot();
    };
    metrics = new Metrics('node-1', sourceOf(snapshot), 1);
  });
  metrics?.leave();
});
