import type { CoreV1Event } from '@kubernetes/client-node';
import { ReleaseError } from './errors.js';

interface Remedy {
  readonly sign: RegExp;
  readonly text: string;
}

/** Known reasons for which Kubernetes refuses pods, and what to do. */
const REMEDIES: readonly Remedy[] = [
  {
    sign: /violates PodSecurity/,
    text:
      'The pods of the node access the host, which the namespace must allow: ' +
      '`kubectl label namespace {namespace} pod-security.kubernetes.io/enforce=privileged ' +
      '--overwrite`.',
  },
  {
    sign: /insufficient quota to match these scopes/,
    text:
      "A ResourceQuota must allow pods of the system's critical classes: " +
      '`helm upgrade` with --set criticalPodsQuota.create=always, or with --set ' +
      'priorityClass.create=true to do without these classes.',
  },
  {
    sign: /exceeded quota/,
    text:
      'A ResourceQuota of the namespace is too small: enlarge it, or install into a namespace of ' +
      'its own.',
  },
  {
    sign: /no PriorityClass with name/,
    text:
      'Name a PriorityClass that exists by node.priorityClassName and control.priorityClassName, ' +
      'or set priorityClass.create=true.',
  },
];

/** The refusal that an event of a controller reports. */
export function refusalOf(
  { involvedObject, message = '' }: CoreV1Event,
  namespace: string,
): ReleaseError {
  const owner = `${involvedObject.kind} ${involvedObject.name}`;
  const remedy =
    REMEDIES.find(({ sign }) => sign.test(message))?.text ?? 'Change the policy that rejects them.';
  const reason = message.replace(/^Error creating: /, '').replace(/[.\s]*$/, '.');
  return new ReleaseError('PODS_REFUSED', {
    owner,
    reason,
    remedy: remedy.replaceAll('{namespace}', namespace),
  });
}
