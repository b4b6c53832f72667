import {
  ALLOCATION_METRICS,
  ALLOCATION_ON_GPU_METRICS,
  GPU_METRICS,
  LABELS,
  NODE_METRICS,
} from './definitions.js';
import { EVENT_METRICS } from './events.js';

export interface DescribedMetric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  /** Labels in addition to `node`. */
  readonly labels: readonly string[];
}

/** All metrics of a node, in the order of docs/metrics.md. */
export function allMetrics(): DescribedMetric[] {
  const groups: [readonly Partial<DescribedMetric>[], readonly string[]][] = [
    [GPU_METRICS, LABELS.gpu],
    [ALLOCATION_METRICS, LABELS.allocation],
    [ALLOCATION_ON_GPU_METRICS, LABELS.allocationOnGpu],
    [NODE_METRICS, LABELS.node],
    [Object.values(EVENT_METRICS), LABELS.node],
  ];
  return groups.flatMap(([metrics, labels]) =>
    metrics.map(({ name = '', type = '', help = '', labels: own = [] }) => ({
      name,
      type,
      help,
      labels: [...labels, ...own],
    })),
  );
}
