import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import type { Owner, Suspender } from '@nvidia-virtual/ledger';
import type { EventReason } from './pod-events.js';

/** The event of a pod after a suspension or resumption of a container. */
export function suspensionEvent(
  { namespace, pod, container }: Owner,
  by: readonly Suspender[] = [],
): [reason: EventReason, sentence: string] {
  if (by.includes('policy') && by.length === 1)
    return ['GpuResumed', `Container ${container} has its GPU again as soon as its turn comes.`];
  if (by.length === 0) return ['GpuResumed', `Container ${container} has its GPU again.`];
  const who = by.includes('pod')
    ? `${ANNOTATION.suspended}. \`kubectl gpu-usage resume ${pod} -n ${namespace}\` removes it`
    : 'an administrator of the node, who can resume it';
  const sentence = `The CUDA calls of container ${container} wait: it is suspended by ${who}.`;
  return ['GpuSuspended', sentence];
}
