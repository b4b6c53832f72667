/** The subset of an OpenAPI schema used here. */
interface Schema {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly format?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
}

const text = (description: string): Schema => ({ type: 'string', description });
const whole = (description: string): Schema => ({ type: 'integer', format: 'int64', description });
const figure = (description: string): Schema => ({ type: 'number', format: 'double', description });
const object = (description: string, properties: Record<string, Schema>): Schema => ({
  type: 'object',
  description,
  properties,
});
const list = (description: string, items: Schema): Schema => ({
  type: 'array',
  description,
  items,
});

const COMMON = {
  apiVersion: text('The version of this schema.'),
  kind: text('The kind of this object.'),
  metadata: {
    type: 'object',
    description: 'Name, namespace, labels and creation time of the pod or node.',
  } as Schema,
  message: text('Why the pod waits, cannot be suspended, or has no figures.'),
  timestamp: text('Time of the report of the node. Missing: no report.'),
  windowSeconds: whole('Length of the window for used time, in seconds. It ends at the timestamp.'),
};

const MEMORY = object('GPU memory, in bytes.', {
  quota: whole('Per GPU. 0: no quota. Missing: unknown until the pod has a node.'),
  used: whole('Sum over all its GPUs.'),
  peak: whole('Sum of the peaks of the running processes.'),
  out: whole('The part of the used memory that is in host memory.'),
  state: text('resident, leaving, out or entering. Missing: no allocation yet.'),
});

const TIME = object('GPU time, in percent of one GPU and in seconds.', {
  share: figure('Granted share of each of its GPUs.'),
  used: figure('Time used in the window.'),
  waiting: figure('Part of the window spent waiting for a GPU.'),
  busySeconds: figure('Time used since the allocation was made.'),
  waitingSeconds: figure('Time waited since the allocation was made.'),
  policy: text(
    'burst: may use idle time of the GPU beyond its share; fixed: never more than its share.',
  ),
  priority: whole('-100 to 100. Higher runs first.'),
  latency: text('low: accepts short windows. Missing: normal.'),
});

const CONTAINER = object('One container that requests slots.', {
  name: text('Name of the container.'),
  slots: whole('Requested slots.'),
  gpus: list(
    'GPUs of its allocation. Empty: none yet.',
    object('One GPU.', {
      uuid: text('UUID as reported by the driver.'),
      index: whole('Index as reported by the driver.'),
      name: text('Model name.'),
    }),
  ),
  reserved: list(
    'Other GPUs of which it holds slots, because its pod moves. Missing: none.',
    text('UUID as reported by the driver.'),
  ),
  memory: MEMORY,
  time: TIME,
  sessions: whole('Processes that use the GPU.'),
  faults: whole('Faults of these processes.'),
  suspendedBy: list(
    'Who suspended it, and must resume it. Missing: it is not suspended.',
    text(
      'pod: the annotation nvidia-virtual/suspended; node: an administrator of the node; ' +
        'policy: others have the memory of an oversubscribed GPU now.',
    ),
  ),
});

const SLOTS = object('Slots.', {
  total: whole('All slots.'),
  used: whole('Held by pods.'),
  free: whole('Available slots.'),
});

const GPU_MEMORY = object('GPU memory, in bytes.', {
  total: whole('Total memory.'),
  granted: whole('Sum of the quotas of its allocations.'),
  used: whole('Memory used by its allocations.'),
});

const GPU = object('One GPU.', {
  uuid: text('UUID as reported by the driver.'),
  index: whole('Index as reported by the driver.'),
  name: text('Model name.'),
  mode: text('exclusive or concurrent.'),
  healthy: { type: 'boolean', description: 'Whether its slots can be allocated.' },
  drained: { type: 'boolean', description: 'Whether its pods leave, and it gets no new ones.' },
  slots: SLOTS,
  memory: GPU_MEMORY,
  time: object('GPU time, in percent.', {
    granted: figure('Sum of the shares of its allocations.'),
    used: figure('Time used by its allocations in the window.'),
  }),
  allocations: whole('Allocations on this GPU.'),
});

/** Schemas by kind. */
export const SCHEMAS: Readonly<Record<string, Schema>> = {
  PodGpuUsage: object('GPU resources granted to a pod, and their usage.', {
    ...COMMON,
    podUid: text('UID of the pod.'),
    state: text('Waiting, Starting, Idle, Active, Suspended, Unknown or Ending.'),
    node: text('Node of the pod.'),
    slots: whole('Slots held by the pod.'),
    containers: list('Containers that request slots.', CONTAINER),
  }),
  NodeGpuUsage: object('Capacity, grants and usage of the GPUs of a node.', {
    ...COMMON,
    state: text('Ready, Unhealthy or Silent.'),
    slots: SLOTS,
    memory: GPU_MEMORY,
    gpus: list('Its GPUs.', GPU),
  }),
};
