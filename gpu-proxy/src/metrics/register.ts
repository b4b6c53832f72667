import type { Metric, Registry } from 'prom-client';

export type Labels = Readonly<Record<string, string | number>>;

/** One line, as prom-client takes it. */
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

/** prom-client asks a metric for its name, type, help and values; it has no metric of its own whose counts can be set. */
export function registerMetric(registry: Registry, { name, help, type }: Described, samples: (name: string) => readonly Sample[]): void {
  const get = async () => ({ name, help, type, values: samples(name) });
  registry.registerMetric({ name, help, type, get } as unknown as Metric);
}
