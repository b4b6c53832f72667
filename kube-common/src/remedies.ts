/** A known reason for which Kubernetes does not start our pods, and what to do. */
interface Remedy {
  readonly sign: RegExp;
  readonly text: string;
}

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
  {
    sign: /hostPath type check failed/,
    text:
      "The kubelet's root directory is elsewhere: name it by node.kubeletRoot, for example " +
      '/var/lib/k0s/kubelet for k0s.',
  },
  {
    sign: /ErrImagePull|ImagePullBackOff|InvalidImageName|Failed to pull image/,
    text:
      'Name the registry that has our images by images.registry, and a Secret for it by ' +
      'images.pullSecrets: `kubectl -n {namespace} describe pods` has the answer of the registry.',
  },
];

/**
 * The remedy for a problem that Kubernetes reports about our pods; undefined: not known.
 * @param namespace of the release
 */
export function remedyFor(message: string, namespace: string): string | undefined {
  return REMEDIES.find(({ sign }) => sign.test(message))?.text.replaceAll('{namespace}', namespace);
}
