import type { CoreV1Event } from '@kubernetes/client-node';
import { remedyFor } from '@nvidia-virtual/kube-common/remedies';
import { ReleaseError } from './errors.js';

/** The refusal that an event of a controller reports. */
export function refusalOf(
  { involvedObject, message = '' }: CoreV1Event,
  namespace: string,
): ReleaseError {
  const owner = `${involvedObject.kind} ${involvedObject.name}`;
  const remedy = remedyFor(message, namespace) ?? 'Change the policy that rejects them.';
  const reason = message.replace(/^Error creating: /, '').replace(/[.\s]*$/, '.');
  return new ReleaseError('PODS_REFUSED', { owner, reason, remedy });
}
