import { ALLOCATION_METRICS, ALLOCATION_ON_GPU_METRICS, GPU_METRICS, LABELS, NODE_METRICS } from './definitions.js';
import { EVENT_METRICS } from './events.js';

export interface DescribedMetric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  /** Beside `node`, which all have. */
  readonly labels: readonly string[];
}

/** Every metric that a node tells, in the order of the page. */
export function allMetrics(): DescribedMetric[] {
  const groups: [readonly Partial<DescribedMetric>[], readonly string[]][] = [
    [GPU_METRICS, LABELS.gpu],
    [ALLOCATION_METRICS, LABELS.allocation],
    [ALLOCATION_ON_GPU_METRICS, LABELS.allocationOnGpu],
    [NODE_METRICS, LABELS.node],
    [Object.values(EVENT_METRICS), LABELS.node],
  ];
  return groups.flatMap(([metrics, labels]) =>
    metrics.map(({ name = '', type = '', help = '', labels: own = [] }) => ({ name, type, help, labels: [...labels, ...own] })),
  );
}
