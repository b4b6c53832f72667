import type { SessionRecord } from '@nvidia-virtual/ledger';
import { compareMemory, type DeviceMemory, type ProcessMemory } from './device-memory.js';
import type { EndCause } from './metrics/events.js';
import { Metrics, type MetricsSource } from './metrics/metrics.js';
import type { MetricsFile } from './metrics/metrics-file.js';
import type { RoundTrips } from './metrics/totals.js';
import type { GpuNode } from './node.js';
import type { Session } from './session.js';

export interface NodeMetricsOptions extends Pick<MetricsSource, 'ledgerConnected' | 'podsFollowed'> {
  readonly deviceMemory: DeviceMemory;
  /** Where counters go on. */
  readonly file: MetricsFile;
}

/** The metrics of a node, which hear its events from now on. */
export function metricsOf(node: GpuNode, { deviceMemory, file, ...connections }: NodeMetricsOptions): Metrics {
  let processes: ProcessMemory = new Map();
  const gpuOf = (uuid: string) => node.gpus.find((gpu) => gpu.uuid === uuid);
  const left = (uuid: string) => {
    const gpu = gpuOf(uuid);
    return gpu && node.left(gpu);
  };
  const source: MetricsSource = {
    snapshot: async () => {
      [processes] = await Promise.all([deviceMemory.read(), node.refresh()]);
      return node.snapshot();
    },
    roundTrips: (session) => roundTripsOf(node, session),
    warmWorkers: (gpu) => left(gpu)?.warmWorkersReady ?? 0,
    memoryLeft: (gpu) => left(gpu)?.memory ?? 0,
    reportedMemory: (allocation) => compareMemory(allocation, node.gpus, processes),
    ...connections,
  };
  const metrics = new Metrics(node.name, source, file);
  node.on('sessionStarted', (worker) => metrics.events.sessionStarted(worker));
  node.on('arbiterRestarted', () => metrics.events.arbiterRestarted());
  node.on('mpsRestarted', () => metrics.events.mpsRestarted());
  node.on('sessionEnded', ({ session, use, roundTrips }) => {
    if (session.secondsToReturn !== undefined) metrics.events.workerGone(session.secondsToReturn);
    metrics.sessionEnded(causeOf(session), session.record, use, roundTrips);
  });
  return metrics;
}

function roundTripsOf(node: GpuNode, { allocation, number }: SessionRecord): RoundTrips {
  const sessions = node.allocations.find(({ id }) => id === allocation)?.sessions;
  return sessions?.find(({ session }) => session.record.number === number)?.figures.roundTrips ?? [];
}

function causeOf(session: Session): EndCause {
  if (session.killed) return 'killed';
  if (session.refusal !== undefined) return 'refused';
  return session.died ? 'worker_died' : 'client_ended';
}
