import type { V1Pod } from '@kubernetes/client-node';
import { ANNOTATION } from './names.js';

/** Whether the annotation of a pod suspends it. Who may change the pod may change that. */
export function asksToSuspend({ metadata }: Pick<V1Pod, 'metadata'>): boolean {
  return metadata?.annotations?.[ANNOTATION.suspended] === 'true';
}
