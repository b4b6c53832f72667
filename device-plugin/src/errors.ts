import { defineErrors } from '@nvidia-virtual/service/error-table';

/**
 * Everything that the device plugin can refuse or report as failed: one code, one sentence (what
 * happened, to which object, what to do). docs/errors.md lists the same codes; a test compares the
 * two. A code is never reused for another meaning.
 */
const TABLE = {
  INSTALLATION_BROKEN:
    '{file} of this build cannot be read: {reason}. Name the directory that holds the build by ' +
    '--installation.',
  VERSION_NOT_INSTALLED:
    'Version {version} cannot be installed in {directory}: {reason}. ' +
    'Free space there, or name another directory of the host by --versions.',
  DIRECTORY_NOT_LABELLED:
    '{directory} cannot get the SELinux type {type}: {reason}. ' +
    'Run `chcon --type {type} {directory}` as root on the node.',
  STATE_NOT_WRITTEN:
    '{file} cannot be written: {reason}. Free space there, or name another state directory by ' +
    '--state.',
  KUBELET_DIRECTORY_MISSING:
    '{directory} does not exist. Start the kubelet, or name its root directory by --kubelet-root.',
  KUBELET_NOT_SERVING:
    'The kubelet does not register {resource} over {socket}: {reason}. The device plugin retries.',
  ENDPOINT_NOT_SERVED:
    'The socket {path} cannot be served: {reason}. The device plugin retries; ' +
    'until then the kubelet assigns no slots.',
  SUPERSEDED:
    'A newer device plugin has registered {resource} on this node. ' +
    'This one no longer registers: stop it.',
  SLOT_UNKNOWN:
    'Node {node} no longer has slot {slot}: its GPUs, slotsPerGpu or slotMemory have changed. ' +
    'Create the pod again.',
  GRANT_NOT_MADE:
    'No directory can be created in {state} for {slots}: {reason}. ' +
    'Free space there on node {node}, and create the pod again.',
  PROXY_AWAY:
    'gpu-proxy of node {node} has not answered for {seconds} s: ' +
    '{reason} Until it does, no new pod gets a slot here. Look at its log.',
  GPU_GONE: 'gpu-proxy no longer lists it. Check the log of gpu-proxy, and the driver.',
  GPU_WITHOUT_SLOT:
    'GPU {gpu} ({name}) of node {node} has {memory}, less than one slot of {slot} and its ' +
    'context, so it offers no slot. Lower slotMemory, or leave the GPU out.',
  NVIDIA_PLUGIN:
    'Node {node} offers no {resource}: {what} serves the same GPUs, so pods of both could use ' +
    'the same memory. Remove one of the two from this node, or allow both by --allow ' +
    'nvidia-plugin.',
  NVIDIA_RUNTIME:
    'Node {node} offers no {resource}: its default container runtime gives the real GPUs to ' +
    'any pod that sets NVIDIA_VISIBLE_DEVICES ({sign} is in this container, ' +
    'which did not ask for it). Make runc the default and NVIDIA a RuntimeClass, ' +
    'or forbid the variable in its config.toml ' +
    '(accept-nvidia-visible-devices-envvar-when-unprivileged = false); ' +
    'to accept it, set --allow nvidia-runtime.',
  DRIVER_MISSING:
    'Node {node} has no NVIDIA driver: its kernel module is not loaded. Install driver ' +
    '{oldest} or newer on the node, or leave the node out: ' +
    '`kubectl label node {node} nvidia-virtual/node=false --overwrite`.',
  DRIVER_OLD:
    'Node {node} has NVIDIA driver {version}, but {oldest} or newer is required. Update the ' +
    'driver (docs/driver-upgrade.md), or leave the node out: ' +
    '`kubectl label node {node} nvidia-virtual/node=false --overwrite`.',
  DIRECTORY_NOEXEC:
    'Nothing in {directory} can be executed on node {node}, because {mount} is mounted noexec. ' +
    'On the node: `mount -o remount,exec {mount}`, or name another directory by node.directory.',
  DIRECTORY_LABEL:
    'SELinux is enforcing on node {node}, and {directory} has no label that containers may read. ' +
    'On the node: `chcon --recursive --type container_file_t {directory}`.',
  CGROUPS_MISSING:
    'Node {node} has neither cgroup v2 nor the memory controller of v1 in /sys/fs/cgroup, so ' +
    'no program can be assigned to its pod. Boot it with `systemd.unified_cgroup_hierarchy=1`.',
  NODE_REPORT_NOT_WRITTEN:
    'The report of the node cannot be written to {file}: {reason}. Name another file by --report.',
  API_NOT_REACHED:
    'The annotation and events of node {node} cannot be written: {reason}. ' +
    'The device plugin retries; slots do not depend on it.',
  NODE_STILL_SERVED:
    'Nothing was removed from {directory}: {who} still runs on this node. ' +
    "Uninstall the chart first, or remove the node's label.",
  RELEASE_LIVES:
    'Nothing is removed from node {node}, because the DaemonSet {daemonSet} in namespace ' +
    '{namespace} still serves it. Delete the DaemonSet that started this clean-up. ' +
    'To apply the chart without Helm, render it by `helm template --no-hooks`.',
  PROCESSES_LEFT:
    'Processes that were started from {directory} do not end: {processes}. ' +
    'Find what blocks them, for example in `dmesg`; the rest is removed when they have ended.',
  MOUNTS_LEFT:
    'Nothing was removed from {directory}, because it contains mounts: {mounts}. ' +
    'Unmount them first.',
  CGROUP_IN_USE:
    'The cgroup {cgroup} cannot be removed, because it contains {processes}. ' +
    'End them on this node, then delete the cgroup by `rmdir`.',
} as const satisfies Record<string, string>;

export class PluginError extends defineErrors('PluginError', TABLE) {}
