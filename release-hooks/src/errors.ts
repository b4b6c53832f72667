import { defineErrors } from '@nvidia-virtual/service/error-table';

/**
 * Errors of the release hooks, by code. docs/errors.md lists the same; a test compares the two. A
 * code is never reused for another meaning.
 */
const TABLE = {
  SECRET_MISSING:
    'There is no Secret {secret} with the password of Redis: ' +
    'install the chart, which creates it, or name another one.',
  PASSWORD_MISSING:
    'Secret {secret} has nothing under the key {key}: put the password of Redis there, ' +
    'or name the key that has it by redis.passwordKey.',
  PASSWORD_NOT_WRITTEN: 'The configuration of Redis cannot be written to {file}: {reason}.',
  GPU_PODS_LEFT:
    'Not uninstalled: {count} still on a node with nvidia-virtual/gpu: {pods}. ' +
    'Delete them, then uninstall again. Helm now marks the release as uninstalling. ' +
    'To keep the release: `helm rollback {release} {revision} -n {namespace}`. ' +
    'To uninstall although the programs will fail: the same, then `helm upgrade {release} ' +
    'CHART -n {namespace} --reset-then-reuse-values --set uninstall.withRunningPods=true`, ' +
    'then uninstall again.',
  NODES_NOT_CLEAN:
    'These nodes were not cleaned within {seconds} s: {nodes}. ' +
    'They still have node.directory (default: /var/lib/nvidia-virtual), ' +
    'and processes that were started from it; docs/install.md says how to remove them by hand.',
  RELEASE_LIVES:
    'Nothing was removed, because the DaemonSet {daemonSet} in namespace {namespace} still ' +
    'serves the nodes. Delete this Job. To apply the chart without Helm, ' +
    'render it by `helm template --no-hooks`.',
  PODS_REFUSED: 'Kubernetes rejects the pods of {owner}: {reason} {remedy}',
  NODES_UNFIT:
    'Not installed, because nodes lack something:{problems}Repair them, then ' +
    '`helm uninstall {release} -n {namespace}`, and install again. ' +
    'preflight.enabled=false installs all the same.',
  NOT_READY:
    'Not everything runs after {seconds} s: {waiting}. ' +
    'Look at `kubectl -n {namespace} get pods`, and at the events of the pods.',
} as const satisfies Record<string, string>;

/** Stops a command. The message is one sentence for the user of Helm. */
export class ReleaseError extends defineErrors('ReleaseError', TABLE) {}
