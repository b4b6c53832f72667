import { choice, duration, filePath, many, nodeName } from '@nvidia-virtual/gpu-proxy/configuration/kinds';
import { option, type Values } from '@nvidia-virtual/gpu-proxy/configuration/option';
import { NODE_OPTIONS } from '@nvidia-virtual/gpu-proxy/configuration/schema';

const { node, http, logLevel } = NODE_OPTIONS;

export const INSTALL_OPTIONS = {
  installation: option(filePath, {
    help: 'the directory of this build, as the image has it: lib/libcuda.so.1, the worker, the arbiter',
    default: '/opt/nvidia-virtual',
  }),
  versions: option(filePath, {
    help: 'where builds are installed, each in a directory of its own; the same path on the host and here',
    default: '/var/lib/nvidia-virtual/versions',
  }),
};

export const REMOVE_OPTIONS = {
  daemonSet: option(nodeName, {
    help: 'the DaemonSet that serves the nodes: as long as it is there, nothing is removed',
    otherwise: 'the API server is not asked',
  }),
  namespace: option(nodeName, { help: 'the namespace of that DaemonSet', default: 'nvidia-virtual' }),
  node: option(node.kind, { help: 'the name that Kubernetes has for this node', otherwise: "the host's name" }),
  kubeconfig: option(filePath, { help: 'how the API server is reached', otherwise: "the pod's service account" }),
  host: option(filePath, {
    help: "where the host's directories are mounted here; the host's processes must be seen here too",
    default: '/',
  }),
  directory: option(filePath, { help: 'the directory of the host that holds versions and state', default: '/var/lib/nvidia-virtual' }),
  kubeletRoot: option(filePath, { help: "the kubelet's root directory", default: '/var/lib/kubelet' }),
  cgroup: option(nodeName, {
    help: 'the cgroup at the root of each hierarchy where what belongs to no pod ran',
    default: 'nvidia-virtual',
  }),
  patience: option(duration('1s', '3600s'), {
    help: 'for how long device plugin and gpu-proxy, and what they started, may take to end',
    default: '120s',
  }),
};

export const SERVE_OPTIONS = {
  node: option(node.kind, { help: 'the name that Kubernetes has for this node', otherwise: "the host's name" }),
  state: option(filePath, {
    help: 'the state directory of gpu-proxy; the same path on the host and here, and it must survive a boot',
    default: '/var/lib/nvidia-virtual/state',
  }),
  ...INSTALL_OPTIONS,
  kubeletRoot: option(filePath, {
    help: "the kubelet's root directory: /var/lib/k0s/kubelet for k0s, /var/snap/microk8s/common/var/lib/kubelet for microk8s",
    default: '/var/lib/kubelet',
  }),
  kubeconfig: option(filePath, {
    help: 'how the API server is reached, for the annotation and the events of the node',
    otherwise: "the pod's service account; outside of a pod the API server is told nothing",
  }),
  allow: option(many(choice('nvidia-plugin', 'nvidia-runtime')), {
    help: 'offer slots although another plugin of NVIDIA serves the same GPUs, or although the default container runtime gives real GPUs to any pod that sets NVIDIA_VISIBLE_DEVICES; both may be given',
    otherwise: 'neither: then no slots are offered there',
  }),
  proxyPatience: option(duration('1s', '3600s'), {
    help: 'for how long gpu-proxy may be away before the slots become unhealthy; running pods go on in any case',
    default: '120s',
  }),
  http: option(http.kind, { help: http.details.help, otherwise: 'not served' }),
  logLevel: option(logLevel.kind, { help: logLevel.details.help, default: 'info' }),
};

export type ServeOptions = Values<typeof SERVE_OPTIONS>;
export type InstallOptions = Values<typeof INSTALL_OPTIONS>;
export type Allowed = NonNullable<ServeOptions['allow']>[number];
