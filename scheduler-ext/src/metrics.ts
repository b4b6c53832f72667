import { expiryMetric } from '@nvidia-virtual/kube-common/certificates/expiry-metric';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Cluster } from './cluster/cluster.js';

/** The Prometheus metrics of extender and webhook. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests = new Counter({
    name: 'nvidia_virtual_scheduler_requests_total',
    help: 'Requests of kube-scheduler or the API server, by path and HTTP status.',
    labelNames: ['path', 'status'],
    registers: [this.#registry],
  });
  readonly #seconds = new Histogram({
    name: 'nvidia_virtual_scheduler_request_seconds',
    help: 'Time from the first byte of a request to the end of its answer.',
    labelNames: ['path'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers: [this.#registry],
  });
  readonly contentType = this.#registry.contentType;

  readonly answered = (path: string, status: number, seconds: number): void => {
    this.#requests.inc({ path, status });
    this.#seconds.observe({ path }, seconds);
  };

  exposition(): Promise<string> {
    return this.#registry.metrics();
  }

  followCertificate(expiry: () => number | undefined): void {
    new Gauge({ ...expiryMetric('webhook', expiry), registers: [this.#registry] });
  }

  follow(cluster: Cluster): void {
    const gauge = (name: string, help: string, value: () => number) =>
      new Gauge({
        name: `nvidia_virtual_scheduler_${name}`,
        help,
        registers: [this.#registry],
        collect() {
          this.set(value());
        },
      });
    gauge('nodes', 'Nodes with GPUs or with pods that ask for them.', () => cluster.counts.nodes);
    gauge('pods', 'Pods that ask for slots, those that wait included.', () => cluster.counts.pods);
    gauge(
      'reservations',
      'Bindings that the watched pods do not show yet.',
      () => cluster.counts.reservations,
    );
    gauge('slots', 'Slots of all healthy GPUs.', () => slots(cluster, () => true));
    gauge('slots_used', 'Those of them that pods hold, or may hold.', () =>
      slots(cluster, (used, all) => Math.min(used, all)),
    );
  }
}

function slots(cluster: Cluster, count: (used: number, all: number) => number | boolean): number {
  let sum = 0;
  for (const { gpus } of cluster.nodes()) {
    for (const { healthy, used, model } of gpus) {
      const counted = healthy ? count(used, model.slots) : 0;
      sum += counted === true ? model.slots : Number(counted);
    }
  }
  return sum;
}
