import type { GpuUsage, NodeGpuUsage } from '@nvidia-virtual/usage-api/resources';
import type { SortField } from '../command-line.js';
import { bytes, count, percent } from './figures.js';
import type { Column, Style } from './table.js';

/** One GPU of a node. A node without reported GPUs has one row without a GPU. */
export interface GpuRow {
  readonly node: NodeGpuUsage;
  readonly gpu: GpuUsage | undefined;
}

const STATES: Readonly<Record<string, Style>> = {
  Ready: 'good',
  Unhealthy: 'bad',
  Silent: 'bad',
  Drained: 'warning',
};

export const GPU_COLUMNS: readonly Column<GpuRow>[] = [
  { heading: 'NODE', cell: ({ node }) => node.metadata.name },
  {
    heading: 'GPU',
    cell: ({ gpu }) =>
      gpu === undefined ? '<none>' : gpu.index === undefined ? gpu.uuid : String(gpu.index),
  },
  { heading: 'MODEL', cell: ({ gpu }) => gpu?.name ?? '' },
  { heading: 'STATE', cell: stateOf, style: (row) => STATES[stateOf(row)] },
  { heading: 'SLOTS', cell: ({ node, gpu }) => String((gpu ?? node).slots.total) },
  { heading: 'FREE', cell: ({ node, gpu }) => String((gpu ?? node).slots.free) },
  { heading: 'MEMORY', cell: ({ gpu }) => bytes(gpu?.memory.total) },
  { heading: 'GRANTED', cell: ({ gpu }) => bytes(gpu?.memory.granted) },
  { heading: 'USED', cell: ({ gpu }) => bytes(gpu?.memory.used) },
  { heading: 'SHARE', wide: true, cell: ({ gpu }) => percent(gpu?.time.granted) },
  { heading: 'TIME', cell: ({ gpu }) => percent(gpu?.time.used) },
  { heading: 'ALLOCATIONS', wide: true, cell: ({ gpu }) => count(gpu?.allocations) },
  { heading: 'MODE', wide: true, cell: ({ gpu }) => gpu?.mode ?? '' },
  { heading: 'UUID', wide: true, cell: ({ gpu }) => gpu?.uuid ?? '' },
  // The message of a node is shown once, next to its first GPU.
  {
    heading: 'MESSAGE',
    optional: true,
    cell: ({ node, gpu }) => (gpu === node.gpus[0] ? (node.message ?? '') : ''),
  },
];

export function gpuRows(nodes: readonly NodeGpuUsage[]): GpuRow[] {
  return nodes.flatMap<GpuRow>((node) =>
    node.gpus.length === 0 ? [{ node, gpu: undefined }] : node.gpus.map((gpu) => ({ node, gpu })),
  );
}

/** Sorts largest first. */
export function sortNodes(
  nodes: readonly NodeGpuUsage[],
  field: SortField | undefined,
): NodeGpuUsage[] {
  const figures: Partial<Record<SortField, (node: NodeGpuUsage) => number>> = {
    memory: ({ memory }) => memory.used ?? -1,
    time: ({ gpus }) => gpus.reduce((sum, gpu) => sum + (gpu.time.used ?? 0), 0),
    slots: ({ slots }) => slots.free,
  };
  const figure = field && figures[field];
  if (figure) return nodes.toSorted((a, b) => figure(b) - figure(a));
  if (field === 'state') return nodes.toSorted((a, b) => a.state.localeCompare(b.state));
  return [...nodes];
}

function stateOf({ node, gpu }: GpuRow): string {
  if (node.state === 'Silent') return 'Silent';
  if (gpu?.healthy === false) return 'Unhealthy';
  return gpu?.drained ? 'Drained' : 'Ready';
}
