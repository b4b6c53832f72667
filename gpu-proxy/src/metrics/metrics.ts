import type {
  AllocationSpecification,
  NodeSnapshot,
  SessionRecord,
  SessionUse,
} from '@nvidia-virtual/ledger';
import { Registry } from 'prom-client';
import type { Refusals } from '../allocations/closer.js';
import type { ReportedMemory } from '../gpus/device-memory.js';
import {
  ALLOCATION_METRICS,
  ALLOCATION_ON_GPU_METRICS,
  type Definition,
  GPU_METRICS,
  NODE_METRICS,
  type NodeFigures,
} from './definitions.js';
import { type EndCause, NodeEvents } from './events.js';
import { type Labels, registerMetric, type Sample } from './register.js';
import { toHistogram } from './round-trips.js';
import { type RoundTrips, TotalsKeeper } from './totals.js';

/** Source of the figures, read once per scrape. */
export interface MetricsSource {
  /**
   * The current state. While the arbiter is away, `time` keeps its last value: a decrease would
   * look like a restart.
   */
  snapshot(): NodeSnapshot | Promise<NodeSnapshot>;
  /** From the figures file of a live session. */
  roundTrips(session: SessionRecord): RoundTrips;
  /** Number of warm workers of the GPU with this UUID. */
  warmWorkers(gpu: string): number;
  /** The largest possible quota of a new allocation on this GPU, in bytes. */
  memoryLeft(gpu: string): number;
  /** The part of the last five minutes during which its memory moved; 0: not oversubscribed. */
  exchangingRatio(gpu: string): number;
  /**
   * Memory of an allocation's workers in NVML, as of the latest snapshot; undefined: unknown.
   */
  reportedMemory(allocation: NodeSnapshot['allocations'][number]): ReportedMemory | undefined;
  /**
   * The fraction of the last minute in which kernels of an allocation ran on a GPU, as NVML
   * reports; undefined: unknown.
   */
  reportedBusy(allocation: string, gpu: string): number | undefined;
  ledgerConnected(): boolean;
  /** How often the driver reported each Xid for the GPU with this UUID. */
  xids(gpu: string): ReadonlyMap<number, number>;
  /** Whether the watch of the node's pods is current; undefined: outside of Kubernetes. */
  podsFollowed(): boolean | undefined;
  refusals(): Readonly<Refusals>;
  /** Host memory for the GPU memory of suspended allocations, in bytes. */
  hostMemory(): { readonly used: number; readonly limit: number };
}

/**
 * Interval of reads without a scraper. Otherwise removed allocations would never be forgotten.
 */
const LOOK_EVERY_MS = 60_000;

type Subject<T> = readonly [labels: Labels, subject: T];

/** The Prometheus metrics of a node. */
export class Metrics {
  readonly events: NodeEvents;
  readonly #source: MetricsSource;
  readonly #registry = new Registry();
  readonly #totals = new TotalsKeeper();
  #figures: NodeFigures = {
    gpus: [],
    allocations: [],
    ledgerConnected: false,
    podsFollowed: undefined,
    refusals: { pod: 0, node: 0 },
    hostMemory: { used: 0, limit: 0 },
  };
  #underWay: Promise<string> | undefined;
  readonly #look: NodeJS.Timeout;

  /** @param node its name, a label of every metric. */
  constructor(node: string, source: MetricsSource, lookEveryMs = LOOK_EVERY_MS) {
    this.#source = source;
    this.#registry.setDefaultLabels({ node });
    this.#register(NODE_METRICS, () => [[{}, this.#figures]]);
    this.#register(GPU_METRICS, () => this.#figures.gpus.map((gpu) => [{ gpu: gpu.uuid }, gpu]));
    this.#register(ALLOCATION_METRICS, () =>
      this.#figures.allocations.map((one) => [labelsOf(one.specification), one]),
    );
    this.#register(ALLOCATION_ON_GPU_METRICS, () =>
      this.#figures.allocations.flatMap((one) =>
        one.specification.gpus.map(
          (gpu) =>
            [
              { ...labelsOf(one.specification), gpu },
              { ...one, gpu, reportedBusy: source.reportedBusy(one.specification.id, gpu) },
            ] as const,
        ),
      ),
    );
    this.events = new NodeEvents(this.#registry);
    // If the source fails, the next interval tries again.
    this.#look = setInterval(() => void this.exposition().catch(() => {}), lookEveryMs).unref();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /**
   * Called after the last read of a session's files. Its figures still count for its allocation.
   */
  sessionEnded(
    cause: EndCause,
    session: SessionRecord,
    use: SessionUse,
    roundTrips: RoundTrips,
  ): void {
    if (this.#totals.end(session, use, roundTrips)) this.events.sessionEnded(cause);
  }

  /**
   * Stops periodic reads. The next gpu-proxy counts from 0, which Prometheus handles as a restart.
   */
  leave(): void {
    clearInterval(this.#look);
  }

  /** All metrics in Prometheus' text format. Concurrent calls share one answer. */
  exposition(): Promise<string> {
    this.#underWay ??= this.#expose().finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  async #expose(): Promise<string> {
    this.#figures = this.#figuresOf(await this.#source.snapshot());
    return this.#registry.metrics();
  }

  #figuresOf(snapshot: NodeSnapshot): NodeFigures {
    const source = this.#source;
    this.#totals.observe(snapshot, (session) => source.roundTrips(session));
    return {
      gpus: snapshot.gpus.map((gpu) => ({
        ...gpu,
        warmWorkers: source.warmWorkers(gpu.uuid),
        memoryLeft: source.memoryLeft(gpu.uuid),
        exchangingRatio: source.exchangingRatio(gpu.uuid),
        xids: source.xids(gpu.uuid),
      })),
      allocations: snapshot.allocations.map(({ specification, time, sessions, ...memory }) => ({
        specification,
        reportedMemory: source.reportedMemory({ specification, time, sessions }),
        time,
        state: memory.state ?? 'resident',
        outBytes: memory.outBytes ?? 0,
        memory: sessions.reduce((sum, { use }) => sum + use.memory, 0),
        sessions: sessions.length,
        contexts: sessions.reduce((sum, { use }) => sum + use.contexts, 0),
        totals: this.#totals.totalsOf(specification.id),
      })),
      ledgerConnected: source.ledgerConnected(),
      podsFollowed: source.podsFollowed(),
      refusals: source.refusals(),
      hostMemory: source.hostMemory(),
    };
  }

  #register<T>(definitions: readonly Definition<T>[], subjects: () => readonly Subject<T>[]): void {
    for (const definition of definitions)
      registerMetric(this.#registry, definition, () =>
        subjects().flatMap((subject) => samplesOf(definition, subject)),
      );
  }
}

function samplesOf<T>(definition: Definition<T>, [labels, subject]: Subject<T>): Sample[] {
  const { name } = definition;
  if (definition.type === 'histogram')
    return histogramSamples(name, labels, definition.read(subject));
  const read = definition.read(subject);
  const values = typeof read === 'number' ? ([[{}, read]] as const) : read;
  return values.map(([own, value]) => ({ metricName: name, labels: { ...labels, ...own }, value }));
}

function histogramSamples(name: string, labels: Labels, roundTrips: RoundTrips): Sample[] {
  const { buckets, count, sum } = toHistogram(roundTrips);
  const bounds = [...buckets, { le: '+Inf', count }];
  return [
    ...bounds.map((bucket) => ({
      metricName: `${name}_bucket`,
      labels: { ...labels, le: bucket.le },
      value: bucket.count,
    })),
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}

function labelsOf({ id, name = '', owner }: AllocationSpecification): Labels {
  const { namespace = '', pod = '', container = '' } = owner ?? {};
  return { allocation: id, name, namespace, pod, container };
}
