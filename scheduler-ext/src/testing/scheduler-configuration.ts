import { RESOURCE, SCHEDULER_NAME } from '@nvidia-virtual/kube-common/names';
import type { Strategy } from '@nvidia-virtual/kube-common/pod-request';

/**
 * The KubeSchedulerConfiguration, without client connection and leader election.
 * @param extender URL of the extender: `http://127.0.0.1:8888`
 */
export function schedulerConfiguration(
  extender: string,
  strategy: Strategy,
): { readonly extenders: readonly object[]; readonly [key: string]: unknown } {
  return {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    // A sample of the nodes could miss the few with enough free slots.
    profiles: [
      {
        schedulerName: SCHEDULER_NAME,
        percentageOfNodesToScore: 100,
        pluginConfig: [scoring(strategy)],
      },
    ],
    extenders: [
      {
        urlPrefix: extender,
        filterVerb: 'filter',
        prioritizeVerb: 'prioritize',
        bindVerb: 'bind',
        preemptVerb: 'preempt',
        // Higher than the scores of all plugins together: packing GPUs matters more than free CPUs.
        weight: 10,
        // A binding waits at most 4 s for the API server.
        httpTimeout: '10s',
        nodeCacheCapable: true,
        ignorable: false,
        managedResources: [{ name: RESOURCE, ignoredByScheduler: false }],
      },
    ],
  };
}

/** The default of kube-scheduler is to spread, which would counteract binpack. */
function scoring(strategy: Strategy): object {
  const type = strategy === 'binpack' ? 'MostAllocated' : 'LeastAllocated';
  const resources = [
    { name: RESOURCE, weight: 8 },
    { name: 'cpu', weight: 1 },
    { name: 'memory', weight: 1 },
  ];
  const kind = { apiVersion: 'kubescheduler.config.k8s.io/v1', kind: 'NodeResourcesFitArgs' };
  return { name: 'NodeResourcesFit', args: { ...kind, scoringStrategy: { type, resources } } };
}
