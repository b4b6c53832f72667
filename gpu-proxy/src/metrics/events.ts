import { Counter, Histogram, type Registry } from 'prom-client';

/** How sessions end: the program did, it was refused, gpu-proxy ended it, or its worker died. */
export const END_CAUSES = ['client_ended', 'refused', 'killed', 'worker_died'] as const;
export type EndCause = (typeof END_CAUSES)[number];
const WORKER_STARTS = ['warm', 'cold'] as const;

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
    help: "Time from a session's end until its worker was truly gone and its quota was given back.",
    labels: [],
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30],
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

/** Counts on behalf of the proxy; each method is one event. */
export class NodeEvents {
  readonly #sessionsStarted: Counter<'worker'>;
  readonly #sessionsEnded: Counter<'cause'>;
  readonly #workerGone: Histogram;
  readonly #arbiterRestarts: Counter;
  readonly #mpsRestarts: Counter;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#sessionsStarted = new Counter({ ...EVENT_METRICS.sessionsStarted, labelNames: EVENT_METRICS.sessionsStarted.labels, registers });
    this.#sessionsEnded = new Counter({ ...EVENT_METRICS.sessionsEnded, labelNames: EVENT_METRICS.sessionsEnded.labels, registers });
    this.#workerGone = new Histogram({ ...EVENT_METRICS.workerGone, buckets: [...EVENT_METRICS.workerGone.buckets], registers });
    this.#arbiterRestarts = new Counter({ ...EVENT_METRICS.arbiterRestarts, registers });
    this.#mpsRestarts = new Counter({ ...EVENT_METRICS.mpsRestarts, registers });
    // A series that exists from the start is one whose first increase can be seen.
    for (const worker of WORKER_STARTS) this.#sessionsStarted.inc({ worker }, 0);
    for (const cause of END_CAUSES) this.#sessionsEnded.inc({ cause }, 0);
  }

  sessionStarted(worker: (typeof WORKER_STARTS)[number]): void {
    this.#sessionsStarted.inc({ worker });
  }

  sessionEnded(cause: EndCause): void {
    this.#sessionsEnded.inc({ cause });
  }

  workerGone(seconds: number): void {
    this.#workerGone.observe(seconds);
  }

  arbiterRestarted(): void {
    this.#arbiterRestarts.inc();
  }

  mpsRestarted(): void {
    this.#mpsRestarts.inc();
  }
}
