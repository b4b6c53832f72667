import type { V1Pod } from '@kubernetes/client-node';
import { ANNOTATION, SCHEDULER_NAME } from '@nvidia-virtual/kubernetes/names';
import { containersOf } from '@nvidia-virtual/kubernetes/pod-request';
import type { PatchOperation } from './review.js';

const DEFAULT_SCHEDULER = 'default-scheduler';
/** What holds where the pod says nothing; written down, so that the pod means the same tomorrow. */
const DEFAULTS = { [ANNOTATION.gpus]: '1', [ANNOTATION.mode]: 'exclusive' };

/** Makes our scheduler place a pod that asks for slots, unless its author chose another one or placed it already. */
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
  const missing = Object.entries(DEFAULTS).filter(([annotation]) => given?.[annotation] === undefined);
  if (missing.length === 0) return [];
  if (given === undefined) return [{ op: 'add', path: '/metadata/annotations', value: Object.fromEntries(missing) }];
  return missing.map(([annotation, value]) => ({ op: 'add', path: `/metadata/annotations/${annotation.replace('/', '~1')}`, value }));
}
