import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import { asksToSuspend } from '@nvidia-virtual/kube-common/suspended';
import type { Logger } from 'pino';
import type { Allocation } from '../allocations/allocation.js';
import type { GpuNode } from '../node.js';
import { targetOf } from './binding.js';
import type { NodePods } from './node-pods.js';
import type { PodEvents } from './pod-events.js';
import { PodWishes } from './pod-wishes.js';

interface SuspensionsOptions {
  readonly node: GpuNode;
  readonly pods: NodePods;
  readonly events: Pick<PodEvents, 'warn'>;
  readonly logger: Logger;
}

/**
 * Suspends the allocations of pods that have the annotation for it, and resumes them without it.
 */
export function followSuspensions({ node, pods, events, logger }: SuspensionsOptions) {
  return new PodWishes<boolean>({
    ...{ node, pods, logger },
    wishes: {
      of(allocation, pod) {
        const suspend = asksToSuspend(pod);
        if (suspend !== isSuspendedByPod(allocation)) return suspend;
        allocation.suspensionRefused = undefined;
        return undefined;
      },
      async carryOut(allocation, _, suspend) {
        await (suspend ? node.suspend(allocation, 'pod') : node.resume(allocation, 'pod'));
        allocation.suspensionRefused = undefined;
        return true;
      },
      refused(allocation, pod, suspend, { message }) {
        allocation.suspensionRefused = message;
        node.emit('changed');
        const reason = suspend ? 'GpuNotSuspended' : 'GpuNotResumed';
        const again = `The node tries again as long as ${ANNOTATION.suspended} stays as it is.`;
        events.warn(targetOf(pod), reason, `${message} ${again}`, `${reason} ${allocation.id}`);
      },
    },
  });
}

function isSuspendedByPod({ specification: { suspendedBy = [] } }: Allocation): boolean {
  return suspendedBy.includes('pod');
}
