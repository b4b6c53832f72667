import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import { sum } from '@nvidia-virtual/usage-api/definitions';
import type { ContainerUsage, PodGpuUsage } from '@nvidia-virtual/usage-api/resources';
import type { SortField } from '../command-line.js';
import { ageSince, bytes, count, percent, quota, seconds } from './figures.js';
import { type Column, type Painter, type Style, Table } from './table.js';

const STATES: Readonly<Record<string, Style>> = {
  Active: 'good',
  Waiting: 'warning',
  Starting: 'warning',
  Suspended: 'warning',
  Unknown: 'bad',
  Ending: 'dim',
};
const SUSPENDERS = {
  pod: `${ANNOTATION.suspended} of the pod`,
  node: 'an administrator of the node',
  policy: 'its GPU, which is oversubscribed',
} as const;
/** Part of the quota above which the next allocation may fail. */
const NEARLY_FULL = 0.95;

const memory = (pod: PodGpuUsage) => sum(pod, (container) => container.memory.used);
const memoryQuota = (pod: PodGpuUsage) => sum(pod, (container) => container.memory.quota);
const time = (pod: PodGpuUsage) => sum(pod, (container) => container.time.used);
const share = (pod: PodGpuUsage) => sum(pod, (container) => container.time.share);
const waiting = (pod: PodGpuUsage) => sum(pod, (container) => container.time.waiting);

function podColumns(allNamespaces: boolean): Column<PodGpuUsage>[] {
  const namespace: Column<PodGpuUsage> = {
    heading: 'NAMESPACE',
    cell: ({ metadata }) => metadata.namespace ?? '',
  };
  return [
    ...(allNamespaces ? [namespace] : []),
    { heading: 'NAME', cell: ({ metadata }) => metadata.name },
    { heading: 'STATE', cell: ({ state }) => state, style: ({ state }) => STATES[state] },
    { heading: 'SLOTS', cell: ({ slots }) => String(slots) },
    {
      heading: 'MEMORY',
      cell: (pod) => bytes(memory(pod)),
      style: (pod) => (isNearlyFull(memory(pod), memoryQuota(pod)) ? 'warning' : undefined),
    },
    { heading: 'QUOTA', cell: (pod) => quota(memoryQuota(pod)) },
    {
      heading: 'PEAK',
      wide: true,
      cell: (pod) => bytes(sum(pod, (container) => container.memory.peak)),
    },
    {
      heading: 'OUT',
      wide: true,
      cell: (pod) => bytes(sum(pod, (container) => container.memory.out)),
    },
    { heading: 'TIME', cell: (pod) => percent(time(pod)) },
    { heading: 'SHARE', cell: (pod) => percent(share(pod)) },
    { heading: 'EFFICIENCY', wide: true, cell: (pod) => percent(efficiency(pod)) },
    { heading: 'WAITING', wide: true, cell: (pod) => percent(waiting(pod)) },
    {
      heading: 'PROCESSES',
      wide: true,
      cell: (pod) => count(sum(pod, ({ sessions }) => sessions)),
    },
    { heading: 'FAULTS', wide: true, cell: (pod) => count(sum(pod, ({ faults }) => faults)) },
    { heading: 'NODE', cell: ({ node = '<none>' }) => node },
    { heading: 'GPU', wide: true, cell: ({ containers }) => gpusOf(containers) },
    {
      heading: 'AGE',
      wide: true,
      cell: ({ metadata }) => ageSince(metadata.creationTimestamp, Date.now()),
    },
    { heading: 'MESSAGE', optional: true, cell: ({ message = '' }) => message },
  ];
}

/** Details of one pod, per container. */
export function podLines(pod: PodGpuUsage, paint: Painter): string[] {
  const { metadata, state, node = '<none>', slots, message, timestamp, windowSeconds } = pod;
  const told = timestamp === undefined ? 'nothing yet' : `${ageSince(timestamp, Date.now())} ago`;
  return [
    `Name:        ${metadata.name}`,
    `Namespace:   ${metadata.namespace}`,
    `Node:        ${node}`,
    `State:       ${paint(state, STATES[state])}`,
    ...(message === undefined ? [] : [`Message:     ${message}`]),
    `Slots:       ${slots}`,
    `Figures of:  ${told}${windowSeconds === undefined ? '' : `; time over ${windowSeconds}s`}`,
    'Containers:',
    ...pod.containers.flatMap(containerLines),
  ];
}

function containerLines({
  name,
  slots,
  gpus,
  memory: held,
  time: spent,
  sessions,
  faults,
  suspendedBy,
}: ContainerUsage): string[] {
  const gpu = gpus
    .map(({ uuid, index, name: model }) =>
      index === undefined ? uuid : `${index} (${model ?? 'GPU'}, ${uuid})`,
    )
    .join(', ');
  const policy = spent.policy === undefined ? '' : `, policy ${spent.policy}`;
  const priority = spent.priority ? `, priority ${spent.priority}` : '';
  const latency = spent.latency === undefined ? '' : `, latency ${spent.latency}`;
  return [
    `  ${name}:`,
    `    Slots:      ${slots}`,
    `    GPU:        ${gpu || '<none>'}`,
    `    Memory:     ${bytes(held.used)} used of ` +
      `${quota(held.quota)}${gpus.length > 1 ? ' on each GPU' : ''}, peak ${bytes(held.peak)}` +
      whereabouts(held),
    `    Time:       ${percent(spent.used)} used of ${percent(spent.share)}` +
      `${policy}${priority}${latency}`,
    `    Waiting:    ${percent(spent.waiting)} of the time, for a GPU`,
    `    In total:   ${seconds(spent.busySeconds)} busy, ${seconds(spent.waitingSeconds)} waiting`,
    `    Processes:  ${count(sessions)}${withFaults(faults)}`,
    ...(suspendedBy
      ? [`    Suspended:  by ${suspendedBy.map((by) => SUSPENDERS[by]).join(' and ')}`]
      : []),
  ];
}

/** Says where the memory is, if it is not on the GPU. */
function whereabouts({ state = 'resident', out = 0 }: ContainerUsage['memory']): string {
  return state === 'resident' || (state === 'out' && out === 0)
    ? ''
    : `; ${state}: ${bytes(out)} in host memory`;
}

function withFaults(faults: number | undefined): string {
  if (!faults) return '';
  return `, with ${faults === 1 ? 'a fault' : `${faults} faults`}`;
}

export function podTable(
  pods: readonly PodGpuUsage[],
  allNamespaces: boolean,
  options: ConstructorParameters<typeof Table>[2],
) {
  return new Table(podColumns(allNamespaces), pods, options);
}

/**
 * The used part of the granted time, in percent: 0 for a pod that holds a GPU and uses none.
 * Undefined for a pod without a grant.
 */
function efficiency(pod: PodGpuUsage): number | undefined {
  const granted = share(pod);
  if (granted === undefined || granted === 0 || pod.state === 'Waiting') return undefined;
  const used = time(pod) ?? (pod.state === 'Idle' ? 0 : undefined);
  return used === undefined ? undefined : (used / granted) * 100;
}

/** Sorts largest first, but what is idle first by efficiency; unknown values last. */
export function sortPods(
  pods: readonly PodGpuUsage[],
  field: SortField | undefined,
): PodGpuUsage[] {
  const figures: Partial<Record<SortField, (pod: PodGpuUsage) => number>> = {
    memory: (pod) => memory(pod) ?? -1,
    time: (pod) => time(pod) ?? -1,
    waiting: (pod) => waiting(pod) ?? -1,
    efficiency: (pod) => -(efficiency(pod) ?? Number.POSITIVE_INFINITY),
    slots: ({ slots }) => slots,
  };
  const figure = field && figures[field];
  if (figure) return pods.toSorted((a, b) => figure(b) - figure(a));
  if (field === 'state') return pods.toSorted((a, b) => a.state.localeCompare(b.state));
  return field === 'name'
    ? pods.toSorted((a, b) => a.metadata.name.localeCompare(b.metadata.name))
    : [...pods];
}

function gpusOf(containers: readonly ContainerUsage[]): string {
  const gpus = new Set(
    containers.flatMap((one) =>
      one.gpus.map(({ uuid, index }) => (index === undefined ? uuid : String(index))),
    ),
  );
  return [...gpus].join(',') || '<none>';
}

function isNearlyFull(used: number | undefined, most: number | undefined): boolean {
  return used !== undefined && most !== undefined && most > 0 && used >= most * NEARLY_FULL;
}
