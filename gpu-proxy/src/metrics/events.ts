import type { Registry } from 'prom-client';
import { registerMetric } from './register.js';

/** Why a session ended: client exit, refusal, kill by gpu-proxy, or death of the worker. */
const END_CAUSES = ['client_ended', 'refused', 'killed', 'worker_died'] as const;
export type EndCause = (typeof END_CAUSES)[number];
const WORKER_STARTS = ['warm', 'cold'] as const;
type WorkerStart = (typeof WORKER_STARTS)[number];
/** Upper bounds in seconds. */
const BUCKETS = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30];

/** Metrics of events. */
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
    help:
      'Sessions that ended, by cause: client_ended, refused, killed (by gpu-proxy), ' +
      'worker_died.',
    labels: ['cause'],
  },
  workerGone: {
    type: 'histogram',
    name: 'nvidia_virtual_worker_gone_seconds',
    help:
      "Time from the end of a session's program, or of the session by gpu-proxy, " +
      'until the worker was gone and its quota free. Workers that end first do not count.',
    labels: [],
  },
  leaving: {
    type: 'histogram',
    name: 'nvidia_virtual_memory_leaving_seconds',
    help: 'Time in which allocations were suspended, including the way of their memory out.',
    labels: [],
  },
  entering: {
    type: 'histogram',
    name: 'nvidia_virtual_memory_entering_seconds',
    help: 'Time in which allocations were resumed, including the way of their memory back.',
    labels: [],
  },
  arbiterRestarts: {
    type: 'counter',
    name: 'nvidia_virtual_arbiter_restarts_total',
    help:
      'Restarts of the arbiter because it was gone or hung. Work continued without turns; ' +
      'workers kept their fixed shares.',
    labels: [],
  },
  mpsRestarts: {
    type: 'counter',
    name: 'nvidia_virtual_mps_restarts_total',
    help: 'Restarts of the MPS control daemon of a GPU in concurrent mode because it was gone.',
    labels: [],
  },
  beyondQuota: {
    type: 'counter',
    name: 'nvidia_virtual_memory_beyond_quota_total',
    help:
      'How often gpu-proxy ended all sessions of an allocation because their workers held more ' +
      'memory than its quota, by NVML. The log names the allocation.',
    labels: [],
  },
} as const;

interface Durations {
  /** Cumulative counts by bucket; the last one counts all. */
  readonly counts: number[];
  /** In seconds. */
  sum: number;
}

interface EventCounts {
  readonly sessionsStarted: Record<WorkerStart, number>;
  readonly sessionsEnded: Record<EndCause, number>;
  readonly workerGone: Durations;
  readonly leaving: Durations;
  readonly entering: Durations;
  arbiterRestarts: number;
  mpsRestarts: number;
  beyondQuota: number;
}

/** Event counters; each method counts one event. */
export class NodeEvents {
  readonly #counts: EventCounts = {
    sessionsStarted: zeros(WORKER_STARTS),
    sessionsEnded: zeros(END_CAUSES),
    workerGone: noDurations(),
    leaving: noDurations(),
    entering: noDurations(),
    arbiterRestarts: 0,
    mpsRestarts: 0,
    beyondQuota: 0,
  };

  constructor(registry: Registry) {
    const counts = this.#counts;
    // Series exist from the start, so that Prometheus sees their first increase.
    registerMetric(registry, EVENT_METRICS.sessionsStarted, (name) =>
      byLabel(name, 'worker', counts.sessionsStarted),
    );
    registerMetric(registry, EVENT_METRICS.sessionsEnded, (name) =>
      byLabel(name, 'cause', counts.sessionsEnded),
    );
    for (const what of ['workerGone', 'leaving', 'entering'] as const)
      registerMetric(registry, EVENT_METRICS[what], (name) => histogram(name, counts[what]));
    for (const what of ['arbiterRestarts', 'mpsRestarts', 'beyondQuota'] as const)
      registerMetric(registry, EVENT_METRICS[what], (metricName) => [
        { metricName, labels: {}, value: counts[what] },
      ]);
  }

  sessionStarted(worker: WorkerStart): void {
    this.#counts.sessionsStarted[worker]++;
  }

  sessionEnded(cause: EndCause): void {
    this.#counts.sessionsEnded[cause]++;
  }

  workerGone(seconds: number): void {
    count(this.#counts.workerGone, seconds);
  }

  moved(how: 'leaving' | 'entering', seconds: number): void {
    count(this.#counts[how], seconds);
  }

  arbiterRestarted(): void {
    this.#counts.arbiterRestarts++;
  }

  mpsRestarted(): void {
    this.#counts.mpsRestarts++;
  }

  beyondQuota(): void {
    this.#counts.beyondQuota++;
  }
}

function noDurations(): Durations {
  return { counts: [...BUCKETS, Number.POSITIVE_INFINITY].map(() => 0), sum: 0 };
}

function count(durations: Durations, seconds: number): void {
  durations.sum += seconds;
  for (const [bucket, bound] of [...BUCKETS, Number.POSITIVE_INFINITY].entries())
    if (seconds <= bound) durations.counts[bucket] = (durations.counts[bucket] ?? 0) + 1;
}

function zeros<Key extends string>(keys: readonly Key[]): Record<Key, number> {
  return Object.fromEntries(keys.map((key) => [key, 0])) as Record<Key, number>;
}

function byLabel(metricName: string, label: string, counts: Readonly<Record<string, number>>) {
  return Object.entries(counts).map(([word, value]) => ({
    metricName,
    labels: { [label]: word },
    value,
  }));
}

function histogram(name: string, { counts, sum }: Durations) {
  const bounds = [...BUCKETS, '+Inf'];
  return [
    ...bounds.map((le, bucket) => ({
      metricName: `${name}_bucket`,
      labels: { le },
      value: counts[bucket] ?? 0,
    })),
    { metricName: `${name}_sum`, labels: {}, value: sum },
    { metricName: `${name}_count`, labels: {}, value: counts.at(-1) ?? 0 },
  ];
}
