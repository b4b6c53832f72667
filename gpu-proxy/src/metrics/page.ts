import { allMetrics, type DescribedMetric } from './list.js';

const INTRODUCTION = `# Metrics

\`gpu-proxy serve --http HOST:PORT\` answers Prometheus at \`/metrics\`. [gpu-proxy/grafana/nvidia-virtual.json](../gpu-proxy/grafana/nvidia-virtual.json) is a
Grafana board over them; import it and choose the data source. \`/healthz\` answers while gpu-proxy lives, \`/readyz\` once it serves programs,
and until then with what is not ready yet.

- Every metric has the label \`node\`. \`gpu\` is a UUID; \`allocation\` is an id, and \`name\` what a person called it.
- The share that an allocation got is \`rate(nvidia_virtual_allocation_used_seconds_total[1m])\`, to be compared with
  \`nvidia_virtual_allocation_share_ratio\`: both have the same labels.
- What the sessions of an allocation did is counted on after they have ended, for as long as the allocation lives. Another gpu-proxy on the same state directory
  counts on from there, also after a kill; GPU time goes on as long as either gpu-proxy or the arbiter lives on.

| metric | type | labels | meaning |
| --- | --- | --- | --- |
`;

const END = `
## On Kubernetes

Every process of ours serves metrics of its own: the [device plugin](../device-plugin/README.md#metrics), the extender and the webhook ([scheduler-ext](../scheduler-ext/README.md#options)), and the
[usage API](../usage-api/README.md#what-it-needs). The [chart](../charts/nvidia-virtual/README.md) lets nobody read them until \`networkPolicy.metricsFrom\` names who may. \`monitoring.serviceMonitor\` has the
Prometheus Operator read them all, and \`monitoring.grafanaBoard\` brings the board to Grafana.

This page is printed from \`gpu-proxy/src/metrics/\` by \`node gpu-proxy/dist/pages.js\`; a test insists on it.
`;

/** docs/metrics.md */
export function metricsPage(): string {
  return INTRODUCTION + allMetrics().map(row).join('') + END;
}

function row({ name, type, help, labels }: DescribedMetric): string {
  return `| \`${name}\` | ${type} | ${labels.join(', ')} | ${help} |\n`;
}
