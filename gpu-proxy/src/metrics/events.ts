import type { Registry } from 'prom-client';
import { registerMetric } from './register.js';

/** How sessions end: the program did, it was refused, gpu-proxy ended it, or its worker died. */
export const END_CAUSES = ['client_ended', 'refused', 'killed', 'worker_died'] as const;
export type EndCause = (typeof END_CAUSES)[number];
const WORKER_STARTS = ['warm', 'cold'] as const;
type WorkerStart = (typeof WORKER_STARTS)[number];
/** Upper bounds in seconds. */
const GONE_BUCKETS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30];

/** What the proxy counts as it happens. */
export const EVENT_METRICS = {
  sessionsStarted: {
    type: 'counter',
    name: 'nvidia_virtual_sessions_started_total',
    help: 'Sessions that began, by their worker: warm (it waited with a context ready) or cold.',
    labels: ['worker'],
  },
  sessionsEnded: {
    type: 'counter',
    name: 'nvidia_virtual_sessions_ended_total',
    help: 'Sessions that ended, by cause: client_ended, refused, killed (by gpu-proxy), worker_died.',
    labels: ['cause'],
  },
  workerGone: {
    type: 'histogram',
    name: 'nvidia_virtual_worker_gone_seconds',
    help: "Time from the end of a session's program, or from when gpu-proxy ended the session, until its worker was truly gone and its quota was given back. A worker that ends before either is not counted.",
    labels: [],
  },
  arbiterRestarts: {
    type: 'counter',
    name: 'nvidia_virtual_arbiter_restarts_total',
    help: 'How often the arbiter was started again because it was gone; meanwhile work went on without turns.',
    labels: [],
  },
  mpsRestarts: {
    type: 'counter',
    name: 'nvidia_virtual_mps_restarts_total',
    help: 'How often the MPS control daemon of a GPU in concurrent mode was started again because it was gone.',
    labels: [],
  },
} as const;

/** All that was counted; in metrics.json, where what is missing is 0. */
export interface EventCounts {
  readonly sessionsStarted: Record<WorkerStart, number>;
  readonly sessionsEnded: Record<EndCause, number>;
  /** By bucket, each with what is below it; the last one counts all. */
  readonly workerGone: { readonly counts: number[]; sum: number };
  arbiterRestarts: number;
  mpsRestarts: number;
}

/** Counts on behalf of the proxy; each method is one event. */
export class NodeEvents {
  readonly counts: EventCounts;

  /** @param before what earlier proxies counted. */
  constructor(registry: Registry, before: Partial<EventCounts> = {}) {
    const counts = fromBefore(before);
    this.counts = counts;
    // A series that exists from the start is one whose first increase can be seen.
    registerMetric(registry, EVENT_METRICS.sessionsStarted, (name) => byLabel(name, 'worker', counts.sessionsStarted));
    registerMetric(registry, EVENT_METRICS.sessionsEnded, (name) => byLabel(name, 'cause', counts.sessionsEnded));
    registerMetric(registry, EVENT_METRICS.workerGone, (name) => histogram(name, counts.workerGone));
    registerMetric(registry, EVENT_METRICS.arbiterRestarts, (name) => [{ metricName: name, labels: {}, value: counts.arbiterRestarts }]);
    registerMetric(registry, EVENT_METRICS.mpsRestarts, (name) => [{ metricName: name, labels: {}, value: counts.mpsRestarts }]);
  }

  sessionStarted(worker: WorkerStart): void {
    this.counts.sessionsStarted[worker]++;
  }

  sessionEnded(cause: EndCause): void {
    this.counts.sessionsEnded[cause]++;
  }

  workerGone(seconds: number): void {
    const { workerGone } = this.counts;
    workerGone.sum += seconds;
    for (const [bucket, bound] of [...GONE_BUCKETS, Number.POSITIVE_INFINITY].entries())
      if (seconds <= bound) workerGone.counts[bucket] = (workerGone.counts[bucket] ?? 0) + 1;
  }

  arbiterRestarted(): void {
    this.counts.arbiterRestarts++;
  }

  mpsRestarted(): void {
    this.counts.mpsRestarts++;
  }
}

function fromBefore(before: Partial<EventCounts>): EventCounts {
  return {
    sessionsStarted: { ...zeros(WORKER_STARTS), ...before.sessionsStarted },
    sessionsEnded: { ...zeros(END_CAUSES), ...before.sessionsEnded },
    workerGone: {
      counts: [...GONE_BUCKETS, 0].map((_, bucket) => before.workerGone?.counts[bucket] ?? 0),
      sum: before.workerGone?.sum ?? 0,
    },
    arbiterRestarts: before.arbiterRestarts ?? 0,
    mpsRestarts: before.mpsRestarts ?? 0,
  };
}

function zeros<Key extends string>(keys: readonly Key[]): Record<Key, number> {
  return Object.fromEntries(keys.map((key) => [key, 0])) as Record<Key, number>;
}

function byLabel(metricName: string, label: string, counts: Readonly<Record<string, number>>) {
  return Object.entries(counts).map(([word, value]) => ({ metricName, labels: { [label]: word }, value }));
}

function histogram(name: string, { counts, sum }: EventCounts['workerGone']) {
  const bounds = [...GONE_BUCKETS, '+Inf'];
  return [
    ...bounds.map((le, bucket) => ({ metricName: `${name}_bucket`, labels: { le }, value: counts[bucket] ?? 0 })),
    { metricName: `${name}_sum`, labels: {}, value: sum },
    { metricName: `${name}_count`, labels: {}, value: counts.at(-1) ?? 0 },
  ];
}
