import type { AllocationSpecification, NodeSnapshot, SessionRecord, SessionUse } from '@nvidia-virtual/ledger';
import { type Metric, Registry } from 'prom-client';
import {
  ALLOCATION_METRICS,
  ALLOCATION_ON_GPU_METRICS,
  type Definition,
  GPU_METRICS,
  NODE_METRICS,
  type NodeFigures,
} from './definitions.js';
import { type EndCause, NodeEvents } from './events.js';
import { toHistogram } from './round-trips.js';
import { type RoundTrips, TotalsKeeper } from './totals.js';

/** Where the figures come from; asked once for each scrape. */
export interface MetricsSource {
  /** What is true now. While the arbiter is away, `time` is the last that it said: a figure that falls looks like a restart. */
  snapshot(): NodeSnapshot | Promise<NodeSnapshot>;
  /** From the figures file of a live session. */
  roundTrips(session: SessionRecord): RoundTrips;
  /** Of the GPU with this UUID. */
  warmWorkers(gpu: string): number;
  /** Bytes: the largest quota that a new allocation could still get on this GPU. */
  memoryLeft(gpu: string): number;
  ledgerConnected(): boolean;
}

type Subject<T> = readonly [labels: Labels, subject: T];
type Labels = Readonly<Record<string, string | number>>;
/** One line, as prom-client takes it. */
interface Sample {
  readonly metricName: string;
  readonly labels: Labels;
  readonly value: number;
}

/** What a node tells Prometheus. */
export class Metrics {
  readonly events: NodeEvents;
  readonly #source: MetricsSource;
  readonly #registry = new Registry();
  readonly #totals = new TotalsKeeper();
  #figures: NodeFigures = { gpus: [], allocations: [], ledgerConnected: false };
  #underWay: Promise<string> | undefined;

  /** @param node its name, a label of everything. */
  constructor(node: string, source: MetricsSource) {
    this.#source = source;
    this.#registry.setDefaultLabels({ node });
    this.#register(NODE_METRICS, () => [[{}, this.#figures]]);
    this.#register(GPU_METRICS, () => this.#figures.gpus.map((gpu) => [{ gpu: gpu.uuid }, gpu]));
    this.#register(ALLOCATION_METRICS, () => this.#figures.allocations.map((one) => [labelsOf(one.specification), one]));
    this.#register(ALLOCATION_ON_GPU_METRICS, () =>
      this.#figures.allocations.flatMap((one) =>
        one.specification.gpus.map(
          (gpu) =>
            [
              { ...labelsOf(one.specification), gpu },
              { ...one, gpu },
            ] as const,
        ),
      ),
    );
    this.events = new NodeEvents(this.#registry);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** To be called before the files of the session are removed: what it did still counts for its allocation. */
  sessionEnded(cause: EndCause, session: SessionRecord, use: SessionUse, roundTrips: RoundTrips): void {
    this.events.sessionEnded(cause);
    this.#totals.end(session, use, roundTrips);
  }

  /** All metrics in Prometheus' text format. Who asks while an answer is made gets the same. */
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
      gpus: snapshot.gpus.map((gpu) => ({ ...gpu, warmWorkers: source.warmWorkers(gpu.uuid), memoryLeft: source.memoryLeft(gpu.uuid) })),
      allocations: snapshot.allocations.map(({ specification, time, sessions }) => ({
        specification,
        time,
        memory: sessions.reduce((sum, { use }) => sum + use.memory, 0),
        sessions: sessions.length,
        contexts: sessions.reduce((sum, { use }) => sum + use.contexts, 0),
        totals: this.#totals.totalsOf(specification.id),
      })),
      ledgerConnected: source.ledgerConnected(),
    };
  }

  /** prom-client asks a metric for its name, type, help and values; it has no metric of its own whose buckets can be set. */
  #register<T>(definitions: readonly Definition<T>[], subjects: () => readonly Subject<T>[]): void {
    for (const definition of definitions) {
      const { name, help, type } = definition;
      const get = async () => ({ name, help, type, values: subjects().flatMap((subject) => samplesOf(definition, subject)) });
      this.#registry.registerMetric({ name, help, type, get } as unknown as Metric);
    }
  }
}

function samplesOf<T>(definition: Definition<T>, [labels, subject]: Subject<T>): Sample[] {
  const { name } = definition;
  if (definition.type === 'histogram') return histogramSamples(name, labels, definition.read(subject));
  const read = definition.read(subject);
  const values = typeof read === 'number' ? ([[{}, read]] as const) : read;
  return values.map(([own, value]) => ({ metricName: name, labels: { ...labels, ...own }, value }));
}

function histogramSamples(name: string, labels: Labels, roundTrips: RoundTrips): Sample[] {
  const { buckets, count, sum } = toHistogram(roundTrips);
  const bounds = [...buckets, { le: '+Inf', count }];
  return [
    ...bounds.map((bucket) => ({ metricName: `${name}_bucket`, labels: { ...labels, le: bucket.le }, value: bucket.count })),
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}

function labelsOf({ id, name = '', owner }: AllocationSpecification): Labels {
  const { namespace = '', pod = '', container = '' } = owner ?? {};
  return { allocation: id, name, namespace, pod, container };
}
