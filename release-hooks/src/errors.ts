import { defineErrors } from '@nvidia-virtual/service/error-table';

/**
 * Errors of the release hooks, by code. docs/errors.md lists the same; a test compares the two. A
 * code is never reused for another meaning.
 */
const TABLE = {
  SECRET_MISSING:
    'There is no Secret {secret}, which is to hold the password of Redis: install the chart that has it, or name the one that is meant.',
  PASSWORD_MISSING:
    'Secret {secret} has nothing under the key {key}: put the password of Redis there, or name the key that has it by redis.passwordKey.',
  PASSWORD_NOT_WRITTEN: 'The configuration of Redis cannot be written to {file}: {reason}.',
  GPU_PODS_LEFT:
    'Not uninstalled: {count} still on a node with nvidia-virtual/gpu: {pods}. Delete them, then uninstall again. To keep the release instead, which Helm takes for half uninstalled now: `helm rollback {release} {revision} -n {namespace}`. To let the programs fail: that, then `helm upgrade {release} CHART -n {namespace} --reset-then-reuse-values --set uninstall.withRunningPods=true`, then uninstall again.',
  NODES_NOT_CLEAN:
    'After {seconds} s these nodes are not cleaned: {nodes}. What is left there are node.directory (/var/lib/nvidia-virtual unless it was set) and the processes that were started from it; docs/install.md says how to remove them by hand.',
  RELEASE_LIVES:
    'Nothing was removed, because the DaemonSet {daemonSet} in namespace {namespace} serves the nodes: this is for after an uninstall. Delete this Job; whoever applies the chart without Helm renders it by `helm template --no-hooks`.',
  PODS_REFUSED: 'Kubernetes lets no pod of {owner} in: {reason} {remedy}',
  NOT_READY:
    'After {seconds} s not everything runs: {waiting}. `kubectl -n {namespace} get pods` and their events say more.',
} as const satisfies Record<string, string>;

/** Stops a command. The message is one sentence for the user of Helm. */
export class ReleaseError extends defineErrors('ReleaseError', TABLE) {}
