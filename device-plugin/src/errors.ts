import { defineErrors } from '@nvidia-virtual/service/error-table';

/**
 * Everything that the device plugin can refuse or report as failed: one code, one sentence (what
 * happened, to which object, what to do). docs/errors.md lists the same codes; a test compares the
 * two. A code is never reused for another meaning.
 */
const TABLE = {
  INSTALLATION_BROKEN:
    '{file} of this build cannot be read: {reason}. Name the directory that holds the build by --installation.',
  VERSION_NOT_INSTALLED:
    'Version {version} cannot be installed in {directory}: {reason}. Make room there, or name another directory of the host by --versions.',
  STATE_NOT_WRITTEN:
    '{file} cannot be written: {reason}. Make room there, or name another state directory by --state.',
  KUBELET_DIRECTORY_MISSING:
    '{directory} does not exist. Start the kubelet, or name its root directory by --kubelet-root.',
  KUBELET_NOT_SERVING:
    'The kubelet does not register {resource} over {socket}: {reason}. It is asked again until it does.',
  ENDPOINT_NOT_SERVED:
    'The socket {path} cannot be served: {reason}. It is tried again; the kubelet gives out no slots until then.',
  SUPERSEDED:
    'A newer device plugin has taken over {resource} on this node. This one registers no more: stop it.',
  SLOT_UNKNOWN:
    'Node {node} has no slot {slot} any more: its GPUs or slotsPerGpu have changed. Make the pod again.',
  GRANT_NOT_MADE:
    'No directory can be made in {state} for {slots}: {reason}. Make room there on node {node}, and make the pod again.',
  PROXY_AWAY:
    'gpu-proxy of node {node} has not answered for {seconds} s: {reason} Until it does, no new pod gets a slot here. Look at its log.',
  GPU_GONE:
    'It was here before, and gpu-proxy lists it no more. Look at its log and at the driver.',
  NVIDIA_PLUGIN:
    'Node {node} offers no {resource}: {what} serves the same GPUs, so pods of both would use them unseen by each other. Keep one of the two off this node; to run both knowingly, give --allow nvidia-plugin.',
  NVIDIA_RUNTIME:
    'Node {node} offers no {resource}: its default container runtime gives the real GPUs to any pod that sets NVIDIA_VISIBLE_DEVICES ({sign} came into this container unasked). Make runc the default and NVIDIA a RuntimeClass, or forbid the variable in its config.toml (accept-nvidia-visible-devices-envvar-when-unprivileged = false); to go on knowingly, give --allow nvidia-runtime.',
  API_NOT_REACHED:
    'The API server cannot be told of node {node}: {reason}. It is tried again; slots do not depend on it.',
  NODE_STILL_SERVED:
    "Nothing was removed from {directory}: {who} still runs on this node. Uninstall the chart first, or take the node's label away.",
  RELEASE_LIVES:
    'Nothing is removed from node {node}, because the DaemonSet {daemonSet} in namespace {namespace} serves it: this is for after an uninstall. Delete the DaemonSet that started this; whoever applies the chart without Helm renders it by `helm template --no-hooks`.',
  PROCESSES_LEFT:
    'What was started from {directory} does not end: {processes}. Look at what holds them, for example in `dmesg`; the rest is removed once they are gone.',
  MOUNTS_LEFT:
    'Nothing was removed from {directory}, because something is mounted in it: {mounts}. Unmount that first.',
} as const satisfies Record<string, string>;

export class PluginError extends defineErrors('PluginError', TABLE) {}
