import { Counter, Gauge, Histogram, Registry } from 'prom-client';

export interface MetricsSource {
  slots(): { readonly healthy: number; readonly unhealthy: number };
  watched(): boolean;
  proxyAnswers(): boolean;
  gpus(): readonly { readonly uuid: string; readonly healthy: boolean }[];
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];

/** The Prometheus metrics of the device plugin. Gauges are read at each scrape. */
export class Metrics {
  readonly registry = new Registry();
  readonly #allocations: Counter<'result'>;
  readonly #seconds: Histogram;
  readonly #registrations: Counter;

  constructor(node: string, source: MetricsSource) {
    const registers = [this.registry];
    this.registry.setDefaultLabels({ node });
    new Gauge({
      name: 'nvidia_virtual_plugin_slots',
      help: 'Slots that the kubelet was sent, by health.',
      labelNames: ['health'],
      registers,
      collect() {
        for (const [health, count] of Object.entries(source.slots())) this.set({ health }, count);
      },
    });
    new Gauge({
      name: 'nvidia_virtual_plugin_gpu_healthy',
      help: 'By UUID, 1 for a GPU that works, 0 for one that failed or that the driver lost.',
      labelNames: ['gpu'],
      registers,
      collect() {
        this.reset();
        for (const { uuid, healthy } of source.gpus()) this.set({ gpu: uuid }, Number(healthy));
      },
    });
    gauge(
      'nvidia_virtual_plugin_kubelet_connected',
      'Whether the kubelet follows the list of slots.',
      source.watched,
    );
    gauge(
      'nvidia_virtual_plugin_proxy_connected',
      'Whether gpu-proxy answered the last request.',
      source.proxyAnswers,
    );
    this.#registrations = new Counter({
      name: 'nvidia_virtual_plugin_registrations_total',
      help: 'Registrations with the kubelet.',
      registers,
    });
    this.#allocations = new Counter({
      name: 'nvidia_virtual_plugin_allocations_total',
      help: 'Containers for which the kubelet asked for slots: granted or refused.',
      labelNames: ['result'],
      registers,
    });
    this.#seconds = new Histogram({
      name: 'nvidia_virtual_plugin_allocate_seconds',
      help: 'Time to answer the kubelet.',
      buckets: SECONDS,
      registers,
    });

    function gauge(name: string, help: string, holds: () => boolean): void {
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(Number(holds()));
        },
      });
    }
  }

  registered(): void {
    this.#registrations.inc();
  }

  /** Calls `answer`; counts its result and duration. */
  allocation<T>(answer: () => T): T {
    const end = this.#seconds.startTimer();
    let result = 'refused';
    try {
      const given = answer();
      result = 'granted';
      return given;
    } finally {
      this.#allocations.inc({ result });
      end();
    }
  }
}
