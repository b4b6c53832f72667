import type { NodeGpuUsage, PodGpuUsage, UsageObject } from '@nvidia-virtual/usage-api/resources';
import type { CommandLine, Flags } from './command-line.js';
import type { Subject } from './errors.js';
import type { List, Selection, UsageClient } from './usage-client.js';
import { GPU_COLUMNS, type GpuRow, gpuRows, sortNodes } from './view/nodes.js';
import { podTable, sortPods } from './view/pods.js';
import { type Painter, Table } from './view/table.js';

/** Table rows that can be extended. */
interface Rows<T> {
  lines(objects: readonly T[], headers: boolean): string[];
}

/** How to read and show one kind of objects. */
export interface Shown<T extends UsageObject> {
  readonly resource: Subject['resource'];
  readonly selection: Selection;
  /** Printed if the list is empty. */
  readonly nothing: string;
  list(client: UsageClient): Promise<List<T>>;
  sort(objects: readonly T[]): T[];
  /** @param growing more rows will follow, which may fill columns that are empty now */
  rows(objects: readonly T[], paint: Painter, growing: boolean): Rows<T>;
}

/** @param namespace undefined: all namespaces */
export function shownPods(
  { flags, request }: CommandLine,
  namespace: string | undefined,
): Shown<PodGpuUsage> {
  const selection = { ...selectionOf(flags, request.name), namespace };
  return {
    resource: 'podgpuusages',
    selection,
    nothing:
      namespace === undefined
        ? 'No pod requests nvidia-virtual/gpu.'
        : `No pod in namespace ${namespace} requests nvidia-virtual/gpu.`,
    list: (client) => client.pods(selection),
    sort: (pods) => sortPods(pods, flags.sortBy),
    rows: (pods, paint, growing) => {
      const table = podTable(pods, namespace === undefined, {
        wide: flags.output === 'wide',
        paint,
        keepOptional: growing,
      });
      return { lines: (more, headers) => table.lines(more, headers) };
    },
  };
}

export function shownNodes({ flags, request }: CommandLine): Shown<NodeGpuUsage> {
  const selection = selectionOf(flags, request.name);
  return {
    resource: 'nodegpuusages',
    selection,
    nothing: 'No node has nvidia-virtual GPUs.',
    list: (client) => client.nodes(selection),
    sort: (nodes) => sortNodes(nodes, flags.sortBy),
    rows: (nodes, paint, growing) => {
      const table = new Table<GpuRow>(GPU_COLUMNS, gpuRows(nodes), {
        wide: flags.output === 'wide',
        paint,
        keepOptional: growing,
      });
      return { lines: (more, headers) => table.lines(gpuRows(more), headers) };
    },
  };
}

/** A single name is selected by field, so that it can be watched like a list. */
function selectionOf({ selector, fieldSelector }: Flags, name: string | undefined): Selection {
  const fields = [fieldSelector, name === undefined ? undefined : `metadata.name=${name}`]
    .filter(Boolean)
    .join(',');
  return { labels: selector, fields: fields || undefined };
}
