import { RESOURCE, SCHEDULER_NAME } from '@nvidia-virtual/kubernetes/names';
import type { Strategy } from '../placement/placement.js';

/**
 * What kube-scheduler has to be told (KubeSchedulerConfiguration, without the way to the API server and the election of a leader).
 * @param extender where the extender listens: `http://127.0.0.1:8888`
 */
export function schedulerConfiguration(extender: string, strategy: Strategy): object {
  return {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    // A sample of the nodes could miss the few whose GPUs have enough slots left.
    profiles: [{ schedulerName: SCHEDULER_NAME, percentageOfNodesToScore: 100, pluginConfig: [scoring(strategy)] }],
    extenders: [
      {
        urlPrefix: extender,
        filterVerb: 'filter',
        prioritizeVerb: 'prioritize',
        bindVerb: 'bind',
        preemptVerb: 'preempt',
        // Above the scores of all plugins together: which GPU gets full matters more than on which node processors are free.
        weight: 10,
        // A binding asks the API server for at most 4 s.
        httpTimeout: '10s',
        nodeCacheCapable: true,
        ignorable: false,
        managedResources: [{ name: RESOURCE, ignoredByScheduler: false }],
      },
    ],
  };
}

/** By default kube-scheduler spreads, and would pull against binpack. */
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
