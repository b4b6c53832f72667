import type { SessionRecord } from '@nvidia-virtual/ledger';
import { compareMemory } from '../gpus/device-memory.js';
import type { GpuNode } from '../node.js';
import type { Session } from '../sessions/session.js';
import type { EndCause } from './events.js';
import { Metrics, type MetricsSource } from './metrics.js';
import type { RoundTrips } from './totals.js';

type NodeMetricsOptions = Pick<MetricsSource, 'ledgerConnected' | 'podsFollowed'>;

/** Creates the metrics of a node and subscribes them to its events. */
export function metricsOf(node: GpuNode, connections: NodeMetricsOptions): Metrics {
  const gpuOf = (uuid: string) => node.gpus.find((gpu) => gpu.uuid === uuid);
  const left = (uuid: string) => {
    const gpu = gpuOf(uuid);
    return gpu && node.left(gpu);
  };
  const source: MetricsSource = {
    snapshot: async () => {
      await node.refresh();
      return node.snapshot();
    },
    roundTrips: (session) => roundTripsOf(node, session),
    warmWorkers: (gpu) => left(gpu)?.warmWorkersReady ?? 0,
    memoryLeft: (gpu) => left(gpu)?.memory ?? 0,
    exchangingRatio: (uuid) => node.exchangingRatio(uuid),
    reportedMemory: (allocation) =>
      compareMemory(allocation, node.gpus, node.deviceReading ?? new Map()),
    xids: (gpu) => node.xidsOf(gpu),
    reportedBusy: (allocation, gpu) => node.reportedBusy(allocation, gpu),
    refusals: () => node.closer.refusals,
    hostMemory: () => node.arenas,
    ...connections,
  };
  const metrics = new Metrics(node.name, source);
  node.on('sessionStarted', (worker) => metrics.events.sessionStarted(worker));
  node.on('moved', (how, seconds) => metrics.events.moved(how, seconds));
  node.on('arbiterRestarted', () => metrics.events.arbiterRestarted());
  node.on('mpsRestarted', () => metrics.events.mpsRestarted());
  node.on('beyondQuota', () => metrics.events.beyondQuota());
  node.on('sessionEnded', ({ session, use, roundTrips }) => {
    if (session.secondsToReturn !== undefined) metrics.events.workerGone(session.secondsToReturn);
    metrics.sessionEnded(causeOf(session), session.record, use, roundTrips);
  });
  return metrics;
}

function roundTripsOf(node: GpuNode, { allocation, number }: SessionRecord): RoundTrips {
  const sessions = node.allocations.find(({ id }) => id === allocation)?.sessions;
  return (
    sessions?.find(({ session }) => session.record.number === number)?.figures.roundTrips ?? []
  );
}

function causeOf(session: Session): EndCause {
  if (session.killed) return 'killed';
  if (session.refusal !== undefined) return 'refused';
  return session.died ? 'worker_died' : 'client_ended';
}
