import { DEFAULT_STATE, DEFAULT_VERSIONS, NODE_DIRECTORY } from '@nvidia-virtual/node-state/paths';
import {
  choice,
  duration,
  filePath,
  gpuName,
  many,
  nodeName,
  trueOrFalse,
} from '@nvidia-virtual/service/configuration/kinds';
import { option, type Values } from '@nvidia-virtual/service/configuration/option';
import { SHARED_OPTIONS } from '@nvidia-virtual/service/configuration/shared-options';

const { http, logLevel } = SHARED_OPTIONS;

const node = option(SHARED_OPTIONS.node.kind, {
  help: 'name of this node in Kubernetes',
  otherwise: "the host's name",
});

const kubeletRoot = option(filePath, {
  help:
    "the kubelet's root directory: /var/lib/k0s/kubelet for k0s, " +
    '/var/snap/microk8s/common/var/lib/kubelet for microk8s',
  default: '/var/lib/kubelet',
});

export const INSTALL_OPTIONS = {
  installation: option(filePath, {
    help: 'directory of this build in the image: lib/libcuda.so.1, the worker, the arbiter',
    default: '/opt/nvidia-virtual',
  }),
  versions: option(filePath, {
    help:
      'directory for builds, one subdirectory each; the same path on the host and in the ' +
      'container',
    default: DEFAULT_VERSIONS,
  }),
};

export const REMOVE_OPTIONS = {
  daemonSet: option(nodeName, {
    help: 'DaemonSet that serves the nodes; nothing is removed while it exists',
    otherwise: 'the API server is not asked',
  }),
  namespace: option(nodeName, {
    help: 'the namespace of that DaemonSet',
    default: 'nvidia-virtual',
  }),
  node,
  kubeconfig: option(filePath, {
    help: 'kubeconfig of the API server',
    otherwise: "the pod's service account",
  }),
  host: option(filePath, {
    help: "mount point of the host's directories; the host's processes must be visible too",
    default: '/',
  }),
  directory: option(filePath, {
    help: 'the directory of the host that holds versions and state',
    default: NODE_DIRECTORY,
  }),
  kubeletRoot,
  cgroup: option(nodeName, {
    help: 'cgroup at the root of each hierarchy for processes that belong to no pod',
    default: 'nvidia-virtual',
  }),
  patience: option(duration('1s', '3600s'), {
    help: 'time for device plugin, gpu-proxy and their child processes to end',
    default: '120s',
  }),
};

const backend = option(choice('auto', 'real', 'simulated'), {
  help: "back end of the node's gpu-proxy; real: the node must have a driver",
  default: 'auto',
});

const allow = option(many(choice('nvidia-plugin', 'nvidia-runtime')), {
  help:
    "offer slots although NVIDIA's plugin serves the same GPUs, or the default runtime gives " +
    'GPUs to any pod that sets NVIDIA_VISIBLE_DEVICES; may be repeated',
  otherwise: 'neither: then no slots are offered there',
});

export const CHECK_OPTIONS = {
  node,
  directory: option(filePath, {
    help: 'the directory of the host that holds versions and state; it need not exist',
    default: NODE_DIRECTORY,
  }),
  kubeletRoot,
  backend,
  gpu: option(many(gpuName), {
    help: 'a GPU that is ours; may be repeated',
    otherwise: 'all GPUs',
  }),
  allow,
  report: option(filePath, {
    help: 'file for the result',
    default: '/dev/termination-log',
  }),
};

export const SERVE_OPTIONS = {
  node,
  state: option(filePath, {
    help:
      'state directory of gpu-proxy; the same path on the host and in the container; ' +
      'must survive a boot',
    default: DEFAULT_STATE,
  }),
  ...INSTALL_OPTIONS,
  kubeletRoot,
  kubeconfig: option(filePath, {
    help: 'kubeconfig of the API server, for the annotation and the events of the node',
    otherwise: "the pod's service account; outside of a pod the API server is told nothing",
  }),
  backend,
  allow,
  nvidiaSmi: option(trueOrFalse, {
    help: "mount the node's nvidia-smi into containers, if the node has one",
    default: 'true',
  }),
  preload: option(trueOrFalse, {
    help:
      'true: containers get an /etc/ld.so.preload, so that no other libcuda.so.1 of the image ' +
      'is loaded; false: for images that need a file of their own there',
    default: 'true',
  }),
  proxyPatience: option(duration('1s', '3600s'), {
    help:
      'time for which gpu-proxy may be away before the slots become unhealthy; ' +
      'running pods continue in any case',
    default: '120s',
  }),
  http,
  logLevel,
};

export type ServeOptions = Values<typeof SERVE_OPTIONS>;
export type Allowed = NonNullable<ServeOptions['allow']>[number];
