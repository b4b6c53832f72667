import { expiryMetric } from '@nvidia-virtual/kube-common/certificates/expiry-metric';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

interface MetricsSources {
  watches(): number;
  pods(): number;
  nodes(): number;
  ledgerTrouble(): boolean;
  /** Unix time in seconds; undefined without a certificate. */
  certificateExpiry(): number | undefined;
}

/** Metrics of this server itself. Usage of pods and GPUs is exported by each node's proxy. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #answers = new Counter({
    name: 'nvidia_virtual_usage_api_answers_total',
    help: 'Answered requests, by HTTP status.',
    labelNames: ['status'],
    registers: [this.#registry],
  });
  readonly #seconds = new Histogram({
    name: 'nvidia_virtual_usage_api_answer_seconds',
    help: 'Response time of requests other than watches.',
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
    registers: [this.#registry],
  });

  constructor(sources: MetricsSources) {
    collectDefaultMetrics({ register: this.#registry, prefix: 'nvidia_virtual_usage_api_' });
    this.#gauge('watches', 'Open watches.', () => sources.watches());
    this.#gauge('pods', 'Pods that request slots.', () => sources.pods());
    this.#gauge('nodes', 'Nodes with GPUs.', () => sources.nodes());
    this.#gauge('ledger_away', '1 while the ledger cannot be read.', () =>
      Number(sources.ledgerTrouble()),
    );
    const expiry = expiryMetric('usage-api', () => sources.certificateExpiry());
    new Gauge({ ...expiry, registers: [this.#registry] });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  exposition(): Promise<string> {
    return this.#registry.metrics();
  }

  answered(status: number, seconds: number, watch: boolean): void {
    this.#answers.inc({ status: String(status) });
    if (!watch) this.#seconds.observe(seconds);
  }

  #gauge(name: string, help: string, read: () => number): void {
    const full = `nvidia_virtual_usage_api_${name}`;
    new Gauge({
      name: full,
      help,
      registers: [this.#registry],
      collect() {
        this.set(read());
      },
    });
  }
}
