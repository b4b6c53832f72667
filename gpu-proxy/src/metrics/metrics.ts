import type { AllocationSpecification, NodeSnapshot, SessionRecord, SessionUse } from '@nvidia-virtual/ledger';
import { Registry } from 'prom-client';
import type { ReportedMemory } from '../device-memory.js';
import {
  ALLOCATION_METRICS,
  ALLOCATION_ON_GPU_METRICS,
  type Definition,
  GPU_METRICS,
  NODE_METRICS,
  type NodeFigures,
} from './definitions.js';
import { type EndCause, NodeEvents } from './events.js';
import type { MetricsFile } from './metrics-file.js';
import { type Labels, registerMetric, type Sample } from './register.js';
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
  /** What NVML says of the workers of an allocation, as of the latest snapshot; undefined: nothing. */
  reportedMemory(allocation: NodeSnapshot['allocations'][number]): ReportedMemory | undefined;
  ledgerConnected(): boolean;
  /** What the API server says of the node's pods is heard; undefined: nobody asks it. */
  podsFollowed(): boolean | undefined;
}

/** So often the figures are asked for where no scraper does: else what is gone would never be forgotten. */
const LOOK_EVERY_MS = 60_000;
/** Sessions may end in rows; the file, which is of all allocations, is written once for those of such a time. */
const SAVE_AFTER_MS = 1000;

type Subject<T> = readonly [labels: Labels, subject: T];

/** What a node tells Prometheus. */
export class Metrics {
  readonly events: NodeEvents;
  readonly #source: MetricsSource;
  readonly #registry = new Registry();
  readonly #totals: TotalsKeeper;
  readonly #file: MetricsFile | undefined;
  #figures: NodeFigures = { gpus: [], allocations: [], ledgerConnected: false, podsFollowed: undefined };
  #underWay: Promise<string> | undefined;
  readonly #look: NodeJS.Timeout;
  #saveSoon: NodeJS.Timeout | undefined;

  /** @param node its name, a label of everything. @param file where counters go on, if they do. */
  constructor(node: string, source: MetricsSource, file?: MetricsFile, lookEveryMs = LOOK_EVERY_MS) {
    this.#source = source;
    this.#file = file;
    const before = file?.load() ?? {};
    this.#totals = new TotalsKeeper(before.allocations);
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
    this.events = new NodeEvents(this.#registry, before.events);
    // A source that fails now is asked again.
    this.#look = setInterval(() => void this.exposition().catch(() => {}), lookEveryMs).unref();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** To be called when the files of the session have been read for the last time: what it did still counts for its allocation. */
  sessionEnded(cause: EndCause, session: SessionRecord, use: SessionUse, roundTrips: RoundTrips): void {
    if (!this.#totals.end(session, use, roundTrips)) return;
    this.events.sessionEnded(cause);
    this.#saveSoon ??= setTimeout(() => this.save(), SAVE_AFTER_MS).unref();
  }

  /** What was told must not be taken back by a proxy that starts again: Prometheus would count all of it once more. */
  save(): void {
    clearTimeout(this.#saveSoon);
    this.#saveSoon = undefined;
    this.#file?.save({ events: this.events.counts, allocations: this.#totals.saved });
  }

  /** Nothing is counted any more; the next proxy goes on from here. */
  leave(): void {
    clearInterval(this.#look);
    this.save();
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
    this.save();
    return this.#registry.metrics();
  }

  #figuresOf(snapshot: NodeSnapshot): NodeFigures {
    const source = this.#source;
    this.#totals.observe(snapshot, (session) => source.roundTrips(session));
    return {
      gpus: snapshot.gpus.map((gpu) => ({ ...gpu, warmWorkers: source.warmWorkers(gpu.uuid), memoryLeft: source.memoryLeft(gpu.uuid) })),
      allocations: snapshot.allocations.map(({ specification, time, sessions }) => ({
        specification,
        reportedMemory: source.reportedMemory({ specification, time, sessions }),
        time,
        memory: sessions.reduce((sum, { use }) => sum + use.memory, 0),
        sessions: sessions.length,
        contexts: sessions.reduce((sum, { use }) => sum + use.contexts, 0),
        totals: this.#totals.totalsOf(specification.id),
      })),
      ledgerConnected: source.ledgerConnected(),
      podsFollowed: source.podsFollowed(),
    };
  }

  #register<T>(definitions: readonly Definition<T>[], subjects: () => readonly Subject<T>[]): void {
    for (const definition of definitions)
      registerMetric(this.#registry, definition, () => subjects().flatMap((subject) => samplesOf(definition, subject)));
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
