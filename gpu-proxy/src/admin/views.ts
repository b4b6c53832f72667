import path from 'node:path';
import { usedTime } from '@nvidia-virtual/ledger/records';
import type {
  AllocationMessage,
  GpuMessage,
  NodeUseMessage,
  SessionMessage,
} from '@nvidia-virtual/node-state/admin/messages';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import { plural } from '@nvidia-virtual/service/plural';
import { policyOf, sharingModeOf } from './convert.js';
import { formatTable } from './table.js';

const CONCURRENT_NOTE =
  'concurrent: kernels of all allocations run side by side; ' +
  'a fault of one program ends those of all, all run as one user, and a share only limits ' +
  'the threads of each process (fixed) or nothing (burst).';

/** The lines of `ls`: GPUs with their remaining resources, then allocations. */
export function listView({
  gpus,
  allocations,
}: Pick<NodeUseMessage, 'gpus' | 'allocations'>): string[] {
  return [...gpuTable(gpus), '', ...allocationTable(gpus, allocations)];
}

function gpuTable(gpus: readonly GpuMessage[]): string[] {
  const headings = [
    'GPU',
    'UUID',
    'NAME',
    ' MEMORY',
    ' LEFT',
    ' FIXED SHARE LEFT',
    'MODE',
    'WARM WORKERS',
  ];
  const rows = gpus.map((gpu) => [
    String(gpu.index),
    gpu.uuid,
    gpu.name,
    formatMemorySize(gpu.memoryBytes),
    formatMemorySize(gpu.memoryLeftBytes),
    `${gpu.fixedShareLeftPercent} %`,
    modeOf(gpu),
    gpu.warmWorkers === 0
      ? 'none'
      : `${gpu.warmWorkers}, which hold ` +
        `${formatMemorySize(gpu.warmWorkers * gpu.contextMemoryBytes)}`,
  ]);
  const notes = gpus.some((gpu) => modeOf(gpu) === 'concurrent') ? [CONCURRENT_NOTE] : [];
  return [...formatTable(headings, rows), ...notes];
}

function allocationTable(
  gpus: readonly GpuMessage[],
  allocations: readonly AllocationMessage[],
): string[] {
  if (allocations.length === 0) return ['no allocations'];
  const headings = [
    'ID',
    'NAME',
    'GPU',
    ' QUOTA',
    ' IN USE',
    ' OUT',
    ' SHARE',
    'POLICY',
    ' PRIORITY',
    ' SESSIONS',
    'STATE',
  ];
  const rows = allocations.map((allocation) => [
    allocation.id,
    allocation.name || '-',
    indices(gpus, allocation),
    allocation.memoryBytes === 0 ? 'none' : formatMemorySize(allocation.memoryBytes),
    formatMemorySize(allocation.memoryUsedBytes),
    allocation.outBytes === 0 ? '-' : formatMemorySize(allocation.outBytes),
    `${allocation.sharePercent} %`,
    policyOf(allocation.policy) ?? '',
    String(allocation.priority),
    String(allocation.sessions.length),
    stateOf(allocation),
  ]);
  return formatTable(headings, rows);
}

function stateOf(allocation: AllocationMessage): string {
  const { draining, gpuUuids, slots } = allocation;
  if (gpuUuids.length === 0 && slots.length > 0) return 'granted, not used yet';
  return `${draining ? 'draining, ' : ''}${memoryStateOf(allocation)}`;
}

function memoryStateOf({ state, checkpoint }: AllocationMessage): string {
  const memory = state.replace('MEMORY_STATE_', '').toLowerCase();
  return checkpoint === '' ? memory : `${memory}, in a file`;
}

/** One update of `top`. Rates are relative to `before`, if given. */
export function topView(now: NodeUseMessage, before: NodeUseMessage | undefined): string[] {
  const headings = [
    'ALLOCATION',
    'GPU',
    ' SHARE',
    ' GPU TIME',
    ' WAITING',
    ' QUOTA',
    ' IN USE',
    ' LAUNCHES/S',
    'PROGRAM',
  ];
  const rows = now.allocations.flatMap((allocation) => {
    const earlier = before?.allocations.find(({ id }) => id === allocation.id);
    const seconds = before ? (Date.parse(now.time) - Date.parse(before.time)) / 1000 : 0;
    return [
      allocationRow(now.gpus, allocation, earlier, seconds),
      ...sessionRows(allocation, earlier, seconds),
    ];
  });
  const gpus = now.gpus.map(
    (gpu) =>
      `GPU ${gpu.index}: ${gpu.name}, ${formatMemorySize(gpu.memoryBytes)}, ` +
      `${formatMemorySize(gpu.memoryLeftBytes)} not promised`,
  );
  return [
    `${now.node}, ${now.time}`,
    ...gpus,
    '',
    ...(rows.length > 0 ? formatTable(headings, rows) : ['no allocations']),
  ];
}

function allocationRow(
  gpus: readonly GpuMessage[],
  now: AllocationMessage,
  before: AllocationMessage | undefined,
  seconds: number,
): string[] {
  const percent = (of: (allocation: AllocationMessage) => number) =>
    before && seconds > 0
      ? `${(((of(now) - of(before)) / (seconds * 1e9)) * 100).toFixed(1)} %`
      : '-';
  return [
    now.name || now.id,
    indices(gpus, now),
    `${now.sharePercent} % ${policyOf(now.policy)}`,
    percent(({ time }) => usedTime(time)),
    percent(({ time }) => time.waited),
    now.memoryBytes === 0 ? 'none' : formatMemorySize(now.memoryBytes),
    formatMemorySize(now.memoryUsedBytes),
    rate(launches(now), before && launches(before), seconds),
    `${plural(now.sessions.length, 'session')}${now.draining ? ', draining' : ''}` +
      (now.state === 'MEMORY_STATE_RESIDENT' ? '' : `, ${memoryStateOf(now)}`),
  ];
}

function sessionRows(
  now: AllocationMessage,
  before: AllocationMessage | undefined,
  seconds: number,
): string[][] {
  return now.sessions.map((session) => {
    const earlier = before?.sessions.find(({ number }) => number === session.number);
    const faults = session.faults > 0 ? `, ${plural(session.faults, 'fault')}` : '';
    return [
      ...['', '', '', '', '', ''],
      formatMemorySize(session.memoryBytes),
      rate(session.launches, earlier?.launches, seconds),
      `${path.basename(session.program)} (process ${session.pid})${faults}`,
    ];
  });
}

function launches(allocation: { sessions: readonly SessionMessage[] }): number {
  return allocation.sessions.reduce((sum, session) => sum + session.launches, 0);
}

/** A sum can decrease when sessions end; then the rate is 0. */
function rate(now: number, before: number | undefined, seconds: number): string {
  return before === undefined || seconds <= 0
    ? '-'
    : String(Math.max(0, Math.round((now - before) / seconds)));
}

function indices(gpus: readonly GpuMessage[], { gpuUuids }: AllocationMessage): string {
  return gpuUuids.map((uuid) => gpus.find((gpu) => gpu.uuid === uuid)?.index ?? uuid).join(', ');
}

function modeOf({ mode }: GpuMessage): string {
  return sharingModeOf(mode) ?? '';
}
