import type { Metric, Registry } from 'prom-client';

export type Labels = Readonly<Record<string, string | number>>;

/** One sample in prom-client's format. */
export interface Sample {
  readonly metricName: string;
  readonly labels: Labels;
  readonly value: number;
}

interface Described {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
}

/**
 * Registers a metric whose values are read at each scrape. The counters of prom-client cannot be
 * set, so this implements the interface of a metric.
 */
export function registerMetric(
  registry: Registry,
  { name, help, type }: Described,
  samples: (name: string) => readonly Sample[],
): void {
  const get = async () => ({ name, help, type, values: samples(name) });
  registry.registerMetric({ name, help, type, get } as unknown as Metric);
}
