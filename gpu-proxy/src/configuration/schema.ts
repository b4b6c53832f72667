import type { Policy, SharingMode } from '@nvidia-virtual/ledger';
import { BACKEND_CHOICES } from '../backend.js';
import { MAX_SESSIONS } from '../quota.js';
import { DEFAULT_STATE } from '../state-directory.js';
import {
  address,
  allocationName,
  choice,
  duration,
  filePath,
  gpuName,
  logTarget,
  many,
  memorySize,
  nodeName,
  percent,
  perGpu,
  redisUrl,
  uidRange,
  userName,
  wholeNumber,
} from './kinds.js';
import { option, type Values } from './option.js';

export const SHARING_MODES = ['exclusive', 'concurrent'] as const satisfies readonly SharingMode[];
export const POLICIES = ['burst', 'fixed'] as const satisfies readonly Policy[];

/** Where the file is; the one option that cannot stand in it. */
export const CONFIGURATION_FILE = {
  config: option(filePath, { help: 'the configuration file (YAML)', otherwise: 'no file' }),
};

/** The options of a node. */
export const NODE_OPTIONS = {
  node: option(nodeName, { help: 'the name of this node in the ledger, metrics and logs', otherwise: "the host's name" }),
  state: option(filePath, {
    help: 'directory of allocations, sessions and sockets; it outlives gpu-proxy, but not a boot',
    default: DEFAULT_STATE,
  }),
  socket: option(filePath, {
    help: 'serve one allocation over this socket, to programs of the same user, with backend, gpu, limits and log of these options and no other, and keep nothing',
    otherwise: 'a node, whose allocations have sockets of their own',
    // NVIDIA_VIRTUAL_SOCKET is read in the program; a proxy that a program starts must not listen on its parent's socket.
    variable: false,
  }),
  backend: option(choice(...BACKEND_CHOICES), {
    help: 'the real GPU, the simulated one, or the real one if there is one',
    default: 'auto',
  }),
  gpu: option(many(gpuName), { help: 'which GPU to use; several may be given', otherwise: 'all' }),
  gpuMode: option(perGpu(choice(...SHARING_MODES)), {
    help: 'exclusive: one allocation at a time has the GPU; concurrent: kernels of all run side by side under MPS, for tenants that trust each other, since a fault hits all',
    default: 'exclusive',
  }),
  warmWorkers: option(perGpu(wholeNumber(0, 64)), {
    help: 'how many workers of a GPU wait with a context ready, so that a program starts quickly; each holds the memory of one context; none on a GPU in concurrent mode',
    default: '0',
    reloadable: true,
  }),
  window: option(duration('1ms', '100ms'), {
    help: 'how long one allocation has the GPU when others wait (up to three times that, at most 20ms, where it and all of them pause seldom): longer is throughput, shorter is latency',
    default: '5ms',
    reloadable: true,
  }),
  workerUids: option(uidRange, {
    help: 'the users as whom workers run, one for each allocation, the last one for all in concurrent mode; gpu-proxy must be root',
    otherwise: "gpu-proxy's own user",
  }),
  slotsPerGpu: option(wholeNumber(1, 100), {
    help: 'into how many slots each GPU is divided for Kubernetes: a slot is the least that a container can have, and has a context of its own',
    default: '10',
  }),
  kubernetes: {
    enabled: option(choice('true', 'false'), {
      help: 'true: this is a node of Kubernetes of the name that `node` says. Grants of the device plugin are served, and bound to their pods',
      default: 'false',
    }),
    kubeletRoot: option(filePath, { help: "the kubelet's root directory; another one with k0s or microk8s", default: '/var/lib/kubelet' }),
    versions: option(filePath, {
      help: 'directory on the host with the builds that containers have; the device plugin installs them',
      default: '/var/lib/nvidia-virtual/versions',
    }),
    driverRoot: option(filePath, {
      help: "where on the host NVIDIA's driver is installed: /run/nvidia/driver where the GPU operator installs it",
      default: '/',
    }),
    placement: option(choice('pod', 'none'), {
      help: "pod: workers run among the host's mounts, in a cgroup beneath their pod's, and the arbiter in one of its own, so that they outlive the container of gpu-proxy; none: as its children",
      default: 'pod',
    }),
    healthInterval: option(duration('1s', '600s'), {
      help: 'how often the driver is asked whether it still has all GPUs; what failed is tried again as often',
      default: '15s',
    }),
    patience: option(duration('1s', '600s'), {
      help: 'how long the first program of a container waits for the API server and the kubelet to say whose it is, and for pods that end to leave room, before it is refused',
      default: '60s',
    }),
  },
  limits: {
    sessions: option(wholeNumber(1, MAX_SESSIONS), {
      help: 'the most processes of an allocation that use the GPU at a time; this and the other limits are for allocations made from now on',
      default: '64',
      reloadable: true,
    }),
    pinnedMemory: option(memorySize, {
      help: 'the most pinned host memory of an allocation',
      default: '16GiB',
      reloadable: true,
    }),
    threads: option(wholeNumber(1, 65536), {
      help: 'the most threads of an allocation that use the GPU, over all of its processes',
      default: '4096',
      reloadable: true,
    }),
    handles: option(wholeNumber(16, 16777216), {
      help: 'the most open handles of an allocation, over all of its processes: contexts, streams, events, modules, kernels',
      default: '1048576',
      reloadable: true,
    }),
  },
  ledger: {
    url: option(redisUrl, { help: 'the Redis that holds the ledger', otherwise: 'in this process' }),
    username: option(userName, {
      help: 'the user in Redis',
      otherwise: "Redis' default user",
      needs: [{ key: 'ledger.url' }, { key: 'ledger.passwordFile' }],
    }),
    passwordFile: option(filePath, {
      help: 'the file with the password, read whenever a connection is made',
      otherwise: 'no password',
      needs: [{ key: 'ledger.url' }],
    }),
    tls: {
      ca: option(filePath, {
        help: 'the certificates of the authorities that are trusted to know the Redis (PEM)',
        otherwise: 'those that Node trusts',
        needs: [{ key: 'ledger.url', prefix: 'rediss://' }],
      }),
      cert: option(filePath, {
        help: 'the certificate that says who we are (PEM)',
        otherwise: 'none',
        needs: [{ key: 'ledger.url', prefix: 'rediss://' }, { key: 'ledger.tls.key' }],
      }),
      key: option(filePath, { help: 'the key of that certificate (PEM)', otherwise: 'none', needs: [{ key: 'ledger.tls.cert' }] }),
    },
  },
  http: option(address, {
    help: 'where /metrics, /healthz and /readyz are served to whoever reaches it; nothing is asked of the caller, so let it be a private address',
    otherwise: 'not served',
    reloadable: true,
  }),
  log: option(logTarget, {
    help: 'append JSON lines to this file; it is opened again at each reload, so that it can be rotated',
    otherwise: 'standard output for serve, nowhere for run',
    reloadable: true,
  }),
  logLevel: option(choice('trace', 'debug', 'info', 'warn', 'error', 'fatal'), {
    help: 'the least important lines that are logged',
    default: 'info',
    reloadable: true,
  }),
};

export type Configuration = Values<typeof NODE_OPTIONS>;

/** The options of one allocation. They say nothing about a node, so they are flags only. */
export const ALLOCATION_OPTIONS = {
  name: option(allocationName, { help: 'what you call it', otherwise: 'none' }),
  memory: option(memorySize, { help: 'GPU memory over all its processes, on each of its GPUs', otherwise: 'all that is left' }),
  share: option(percent, { help: "percent of a GPU's time", default: '100' }),
  policy: option(choice(...POLICIES), {
    help: 'burst: idle time of the GPU too; fixed: never more than its share',
    default: 'burst',
  }),
  priority: option(wholeNumber(-100, 100, 'number'), { help: 'a higher one goes first', default: '0' }),
  mode: option(choice(...SHARING_MODES), { help: 'a GPU of which mode it needs', default: 'exclusive' }),
};

export type AllocationOptions = Values<typeof ALLOCATION_OPTIONS>;
