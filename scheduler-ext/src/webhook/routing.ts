import type { V1Pod } from '@kubernetes/client-node';
import { ANNOTATION, SCHEDULER_NAME } from '@nvidia-virtual/kube-common/names';
import { containersOf } from '@nvidia-virtual/kube-common/pod-request';
import type { PatchOperation } from './review.js';

const DEFAULT_SCHEDULER = 'default-scheduler';
/** Defaults of annotations. Written to the pod, so that later defaults do not affect it. */
const DEFAULTS = { [ANNOTATION.gpus]: '1', [ANNOTATION.mode]: 'exclusive' };

/**
 * Assigns our scheduler to a pod that requests slots, unless the pod names another scheduler or a
 * node.
 */
export function routePod(pod: V1Pod): PatchOperation[] {
  if (!containersOf(pod).some(({ slots }) => slots > 0)) return [];
  return [...routing(pod), ...defaults(pod)];
}

function routing({ spec }: V1Pod): PatchOperation[] {
  const { schedulerName = DEFAULT_SCHEDULER, nodeName } = spec ?? {};
  if (schedulerName !== DEFAULT_SCHEDULER || nodeName) return [];
  return [{ op: 'add', path: '/spec/schedulerName', value: SCHEDULER_NAME }];
}

function defaults({ metadata }: V1Pod): PatchOperation[] {
  const given = metadata?.annotations;
  const missing = Object.entries(DEFAULTS).filter(
    ([annotation]) => given?.[annotation] === undefined,
  );
  if (missing.length === 0) return [];
  if (given === undefined)
    return [{ op: 'add', path: '/metadata/annotations', value: Object.fromEntries(missing) }];
  return missing.map(([annotation, value]) => ({
    op: 'add',
    path: `/metadata/annotations/${annotation.replace('/', '~1')}`,
    value,
  }));
}
