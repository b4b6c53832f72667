import { LIMIT_OPTIONS, SHARING_MODES } from '@nvidia-virtual/node-state/allocation-options';
import { DEFAULT_STATE, DEFAULT_VERSIONS } from '@nvidia-virtual/node-state/paths';
import {
  choice,
  duration,
  factor,
  filePath,
  gpuName,
  logTarget,
  many,
  memoryLimit,
  memorySize,
  perGpu,
  trueOrFalse,
  uidRange,
  wholeNumber,
} from '@nvidia-virtual/service/configuration/kinds';
import { loadFlags } from '@nvidia-virtual/service/configuration/load';
import { option, type Values } from '@nvidia-virtual/service/configuration/option';
import { SHARED_OPTIONS } from '@nvidia-virtual/service/configuration/shared-options';
import { BACKEND_CHOICES } from '../gpus/backend.js';

/** The path of the file, the only option that cannot be a key of the file. */
export const CONFIGURATION_FILE = {
  config: option(filePath, { help: 'the configuration file (YAML)', otherwise: 'no file' }),
};

/** The options of a node. */
export const NODE_OPTIONS = {
  node: SHARED_OPTIONS.node,
  state: option(filePath, {
    help: 'directory of allocations, sessions and sockets; allocations stay after a boot',
    default: DEFAULT_STATE,
  }),
  socket: option(filePath, {
    help:
      'serve one allocation on this socket to programs of the same user, and keep no state; ' +
      'only backend, gpu, limits and log apply',
    otherwise: 'a node, whose allocations have sockets of their own',
    // NVIDIA_VIRTUAL_SOCKET is for clients. A gpu-proxy started by a client must not listen on that
    // socket.
    variable: false,
  }),
  backend: option(choice(...BACKEND_CHOICES), {
    help: 'the real GPU, the simulated one, or the real one if there is one',
    default: 'auto',
  }),
  gpu: option(many(gpuName), { help: 'which GPU to use; several may be given', otherwise: 'all' }),
  gpuMode: option(perGpu(choice(...SHARING_MODES)), {
    help:
      'exclusive: one allocation at a time has the GPU; concurrent: ' +
      'kernels of all run side by side under MPS, for tenants that trust each other, ' +
      'because a fault affects all',
    default: 'exclusive',
  }),
  warmWorkers: option(perGpu(wholeNumber(0, 64)), {
    help:
      'workers of a GPU that wait with a context ready, so that programs start quickly; ' +
      'each holds the memory of one context; none on a GPU in concurrent mode',
    default: '0',
    reloadable: true,
  }),
  window: option(duration('1ms', '100ms'), {
    help:
      'time for which one allocation has the GPU when others wait; ' +
      'up to three times that, at most 20ms, if all of them pause seldom; ' +
      'longer increases throughput, shorter decreases latency',
    default: '5ms',
    reloadable: true,
  }),
  overrunLimit: option(duration('0s', '86400s'), {
    help:
      'time in whole seconds for which work may run on after its turn while others wait for the ' +
      'GPU; then its session ends with a message; 0s: no limit, the time is charged',
    default: '0s',
    reloadable: true,
  }),
  guaranteedShare: option(wholeNumber(0, 100), {
    help:
      'percent of its share of the time that an allocation keeps beside higher priorities that ' +
      'never pause; 0: nothing',
    default: '50',
    reloadable: true,
  }),
  managedMemory: option(choice('pinned', 'moves'), {
    help:
      'managed memory stays in host memory, or moves to the GPU and back; for that, programs get ' +
      'a userfaultfd that helps attacks on the kernel; requires Linux 6.6 and root',
    default: 'pinned',
    reloadable: true,
  }),
  hostMemory: option(memoryLimit, {
    help:
      'host memory for the GPU memory of suspended allocations, all together; it is charged to ' +
      'no pod; 0: GPU memory stays on the GPU, and suspending takes only GPU time',
    otherwise: "half of the node's memory",
    reloadable: true,
  }),
  hugePages: option(trueOrFalse, {
    help:
      'sets /sys/kernel/mm/transparent_hugepage/shmem_enabled to advise if it is never, so that ' +
      'hostMemory has huge pages; the first suspension of a program is then five times as fast; ' +
      'requires root',
    default: 'false',
  }),
  movable: option(trueOrFalse, {
    help:
      'programs that start from now on can move to another GPU of the same model ' +
      '(gpu-proxy move); their workers see all of these; requires driver 580 and hostMemory',
    default: 'false',
    reloadable: true,
  }),
  oversubscription: option(perGpu(factor(1, 4)), {
    help:
      'the quotas of a GPU may be so many times its memory: some are in host memory, in turns; ' +
      'requires hostMemory for all; not in concurrent mode',
    default: '1',
  }),
  workerUids: option(uidRange, {
    help:
      'user ids of workers, one for each allocation; workers in concurrent mode share the last ' +
      'one; requires root',
    otherwise: "gpu-proxy's own user",
  }),
  slotsPerGpu: option(wholeNumber(1, 100), {
    help:
      'slots of each GPU for Kubernetes; a slot is the smallest part that a container can have, ' +
      'and includes one context',
    default: '10',
  }),
  slotMemory: option(memorySize, {
    help:
      'GPU memory of a slot on every GPU: a GPU has as many slots as fit, each with one context, ' +
      'at most 100, without those of oversubscription; then slotsPerGpu is not used',
    otherwise: 'slotsPerGpu equal parts of each GPU',
  }),
  kubernetes: {
    enabled: option(trueOrFalse, {
      help:
        'true: this is the Kubernetes node named by `node`; ' +
        'serve grants of the device plugin and bind them to pods',
      default: 'false',
    }),
    kubeletRoot: option(filePath, {
      help: "the kubelet's root directory; k0s and microk8s use another one",
      default: '/var/lib/kubelet',
    }),
    versions: option(filePath, {
      help:
        'directory on the host with the builds that containers use; ' +
        'the device plugin installs them',
      default: DEFAULT_VERSIONS,
    }),
    driverRoot: option(filePath, {
      help: "root of NVIDIA's driver on the host; /run/nvidia/driver for the GPU Operator",
      default: '/',
    }),
    placement: option(choice('pod', 'none'), {
      help:
        "pod: workers run with the host's mounts, in a cgroup below that of their pod, " +
        'and survive the container of gpu-proxy, as does the arbiter; none: ' +
        'both are its children',
      default: 'pod',
    }),
    healthInterval: option(duration('1s', '600s'), {
      help: 'interval of the check that the driver still has all GPUs, and of retries',
      default: '15s',
    }),
    patience: option(duration('1s', '600s'), {
      help:
        'time for which the first program of a container waits for the API server and the ' +
        'kubelet to identify it, and for ending pods to free memory',
      default: '60s',
    }),
  },
  limits: LIMIT_OPTIONS,
  ledger: SHARED_OPTIONS.ledger,
  http: SHARED_OPTIONS.http,
  log: option(logTarget, {
    help: 'append JSON lines to this file; a reload reopens it, so that it can be rotated',
    otherwise: 'standard output for serve, nowhere for run',
    reloadable: true,
  }),
  logLevel: SHARED_OPTIONS.logLevel,
};

export type Configuration = Values<typeof NODE_OPTIONS>;

/** Microseconds. */
export const { window: DEFAULT_WINDOW, guaranteedShare: DEFAULT_GUARANTEED_SHARE } = loadFlags(
  NODE_OPTIONS,
  {},
);
