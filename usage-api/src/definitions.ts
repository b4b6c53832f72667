import { formatQuantity } from '@nvidia-virtual/kube-common/quantity';
import type { ContainerUsage, NodeGpuUsage, PodGpuUsage, UsageObject } from './resources.js';

/** A column of `kubectl get`. */
interface Column<T> {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly format?: 'name';
  /** 0: always; 1: with -o wide. */
  readonly priority: 0 | 1;
  read(object: T): string | number | null;
}

/** Declares one resource of the API: its names, columns and selectable fields. */
export interface Definition<T extends UsageObject> {
  readonly name: string;
  readonly singular: string;
  readonly shortName: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly columns: readonly Column<T>[];
  readonly fields: Readonly<Record<string, (object: T) => string>>;
  /** Appended to the 404 message. */
  readonly notFoundHint: string;
}

const NAME = { name: 'Name', type: 'string', format: 'name', priority: 0 } as const;
const AGE = { name: 'Age', type: 'date', priority: 0 } as const;

export const POD_USAGE: Definition<PodGpuUsage> = {
  name: 'podgpuusages',
  singular: 'podgpuusage',
  shortName: 'pgu',
  kind: 'PodGpuUsage',
  namespaced: true,
  notFoundHint: 'no pod of this name requests nvidia-virtual/gpu, or it has ended',
  fields: {
    'metadata.name': ({ metadata }) => metadata.name,
    'metadata.namespace': ({ metadata }) => metadata.namespace ?? '',
    node: ({ node = '' }) => node,
    state: ({ state }) => state,
  },
  columns: [
    { ...NAME, read: ({ metadata }) => metadata.name },
    { name: 'State', type: 'string', priority: 0, read: ({ state }) => state },
    { name: 'Slots', type: 'integer', priority: 0, read: ({ slots }) => slots },
    { name: 'Memory', type: 'string', priority: 0, read: memoryCell },
    {
      name: 'Peak',
      type: 'string',
      priority: 1,
      read: (pod) => bytes(sum(pod, ({ memory }) => memory.peak)),
    },
    {
      name: 'Out',
      type: 'string',
      priority: 1,
      read: (pod) => bytes(sum(pod, ({ memory }) => memory.out)),
    },
    { name: 'Time', type: 'string', priority: 0, read: timeCell },
    {
      name: 'Waiting',
      type: 'string',
      priority: 1,
      read: (pod) => percent(sum(pod, ({ time }) => time.waiting)),
    },
    {
      name: 'Processes',
      type: 'string',
      priority: 1,
      read: (pod) => text(sum(pod, ({ sessions }) => sessions)),
    },
    {
      name: 'Faults',
      type: 'string',
      priority: 1,
      read: (pod) => text(sum(pod, ({ faults }) => faults)),
    },
    { name: 'Node', type: 'string', priority: 0, read: ({ node = '<none>' }) => node },
    { name: 'GPU', type: 'string', priority: 1, read: gpuCell },
    { ...AGE, read: ({ metadata }) => metadata.creationTimestamp ?? null },
    { name: 'Message', type: 'string', priority: 1, read: ({ message = '' }) => message },
  ],
};

export const NODE_USAGE: Definition<NodeGpuUsage> = {
  name: 'nodegpuusages',
  singular: 'nodegpuusage',
  shortName: 'ngu',
  kind: 'NodeGpuUsage',
  namespaced: false,
  notFoundHint: 'no node of this name has nvidia-virtual GPUs',
  fields: { 'metadata.name': ({ metadata }) => metadata.name, state: ({ state }) => state },
  columns: [
    { ...NAME, read: ({ metadata }) => metadata.name },
    { name: 'State', type: 'string', priority: 0, read: ({ state }) => state },
    { name: 'GPUs', type: 'integer', priority: 0, read: ({ gpus }) => gpus.length },
    { name: 'Slots', type: 'integer', priority: 0, read: ({ slots }) => slots.total },
    { name: 'Free', type: 'integer', priority: 0, read: ({ slots }) => slots.free },
    { name: 'Memory', type: 'string', priority: 0, read: ({ memory }) => bytes(memory.total) },
    { name: 'Granted', type: 'string', priority: 1, read: ({ memory }) => bytes(memory.granted) },
    { name: 'Used', type: 'string', priority: 0, read: ({ memory }) => bytes(memory.used) },
    {
      name: 'Time',
      type: 'string',
      priority: 0,
      read: ({ gpus }) => gpus.map(({ time }) => percent(time.used)).join(','),
    },
    { ...AGE, read: ({ metadata }) => metadata.creationTimestamp ?? null },
    { name: 'Message', type: 'string', priority: 1, read: ({ message = '' }) => message },
  ],
};

/** Sum over all containers, or undefined if no container has the figure. */
export function sum(
  { containers }: PodGpuUsage,
  figure: (container: ContainerUsage) => number | undefined,
): number | undefined {
  const known = containers.map(figure).filter((value) => value !== undefined);
  return known.length === 0 ? undefined : known.reduce((total, value) => total + value, 0);
}

const UNKNOWN = '-';

function memoryCell(pod: PodGpuUsage): string {
  const quota = sum(pod, ({ memory }) => memory.quota);
  return `${bytes(sum(pod, ({ memory }) => memory.used))}/${quota === 0 ? 'any' : bytes(quota)}`;
}

function timeCell(pod: PodGpuUsage): string {
  return (
    `${percent(sum(pod, ({ time }) => time.used))}/` +
    `${percent(sum(pod, ({ time }) => time.share))}`
  );
}

function gpuCell({ containers }: PodGpuUsage): string {
  const gpus = new Set(
    containers.flatMap((container) =>
      container.gpus.map(({ uuid, index }) => (index === undefined ? uuid : String(index))),
    ),
  );
  return gpus.size === 0 ? '<none>' : [...gpus].join(',');
}

function bytes(value: number | undefined): string {
  return value === undefined ? UNKNOWN : formatQuantity(value);
}

function percent(value: number | undefined): string {
  return value === undefined ? UNKNOWN : `${value}%`;
}

function text(value: number | undefined): string {
  return value === undefined ? UNKNOWN : String(value);
}
