import { printable } from '@nvidia-virtual/service/printable';
import type { NamespaceUsage } from '../charge-back.js';
import type { SortField } from '../command-line.js';
import { percent } from './figures.js';
import type { Column } from './table.js';

export const NAMESPACE_COLUMNS: readonly Column<NamespaceUsage>[] = [
  // Prometheus may have labels that no API server checked.
  { heading: 'NAMESPACE', cell: ({ namespace }) => printable(namespace) },
  { heading: 'GPU-HOURS', cell: ({ gpuHours }) => hours(gpuHours.granted) },
  { heading: 'USED', cell: ({ gpuHours }) => hours(gpuHours.used) },
  { heading: 'EFFICIENCY', cell: ({ gpuHours }) => percent(efficiencyOf(gpuHours)) },
  { heading: 'GIB-HOURS', cell: ({ gibHours }) => hours(gibHours.granted) },
  { heading: 'USED', cell: ({ gibHours }) => hours(gibHours.used) },
  { heading: 'EFFICIENCY', cell: ({ gibHours }) => percent(efficiencyOf(gibHours)) },
];

/** Largest first, except by name, and by efficiency: what is idle comes first. */
export function sortNamespaces(
  namespaces: readonly NamespaceUsage[],
  field: SortField | undefined,
): NamespaceUsage[] {
  const figures: Partial<Record<SortField, (one: NamespaceUsage) => number>> = {
    memory: ({ gibHours }) => gibHours.granted,
    time: ({ gpuHours }) => gpuHours.used,
    slots: ({ gpuHours }) => gpuHours.granted,
    efficiency: ({ gpuHours }) => -(efficiencyOf(gpuHours) ?? Number.POSITIVE_INFINITY),
  };
  const figure = field && figures[field];
  return figure ? namespaces.toSorted((a, b) => figure(b) - figure(a)) : [...namespaces];
}

/** Undefined without a grant. */
function efficiencyOf({ granted, used }: NamespaceUsage['gpuHours']): number | undefined {
  return granted > 0 ? (used / granted) * 100 : undefined;
}

function hours(value: number): string {
  return value.toFixed(1);
}
