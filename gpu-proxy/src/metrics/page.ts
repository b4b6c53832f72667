import { allMetrics, type DescribedMetric } from './list.js';

const INTRODUCTION = `# Metrics

\`gpu-proxy serve --http HOST:PORT\` serves three paths:

- \`/metrics\`: the metrics below, for Prometheus. A
  [Grafana board](../gpu-proxy/grafana/nvidia-virtual.json) shows them: import it and choose the
  data source.
- \`/healthz\`: succeeds while gpu-proxy runs.
- \`/readyz\`: succeeds once gpu-proxy serves programs. Before that, it says which part is not \
ready.

Every metric has the label \`node\`. \`gpu\` is a UUID, \`allocation\` is an id, and \`name\` is \
the name
that a person gave the allocation.

The share of GPU time that an allocation got is
\`rate(nvidia_virtual_allocation_used_seconds_total[1m])\`. Compare it with
\`nvidia_virtual_allocation_share_ratio\`, which has the same labels.

Counters of an allocation include its ended sessions. When gpu-proxy restarts, its counters start at
what the live sessions did. That is a counter reset, which \`rate()\` handles. Counters of GPU time
continue as long as the arbiter lives.

| metric | type | labels | meaning |
| --- | --- | --- | --- |
`;

const END = `
## On Kubernetes

The other processes serve metrics too: the [device plugin](../device-plugin/README.md#metrics), the
extender and the webhook ([scheduler-ext](../scheduler-ext/README.md#options)), and the
[usage API](../usage-api/README.md#what-it-needs).
Our kube-scheduler serves its own at port 10259 over TLS, to accounts that may \`get\` the path
\`/metrics\`, as the Prometheus of kube-prometheus may.

Values of the [chart](../charts/nvidia-virtual/README.md):

- \`networkPolicy.metricsFrom\`: the clients that may read metrics. By default, no client may.
- \`monitoring.serviceMonitor\`: the Prometheus Operator scrapes all processes.
- \`monitoring.grafanaBoard\`: a ConfigMap with the board for Grafana.
- \`monitoring.prometheusRule\`: [alerts](alerts.md).

\`node gpu-proxy/dist/pages.js\` prints this page from \`gpu-proxy/src/metrics/\`. A test checks \
that it
is current.
`;

/** docs/metrics.md */
export function metricsPage(): string {
  return INTRODUCTION + allMetrics().map(row).join('') + END;
}

function row({ name, type, help, labels }: DescribedMetric): string {
  return `| \`${name}\` | ${type} | ${labels.join(', ')} | ${help} |\n`;
}
