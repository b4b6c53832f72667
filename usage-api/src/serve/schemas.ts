/** A schema as OpenAPI has it, as much of it as is needed here. */
export interface Schema {
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
  message: text('What a person should know: why it waits, why figures are missing.'),
  timestamp: text('When the node said what is told here. Missing: it did not.'),
  windowSeconds: whole('Seconds before the timestamp that "used" time is of.'),
};

const MEMORY = object('GPU memory, in bytes.', {
  quota: whole('On each GPU. 0: none. Missing: not known before the pod has a node.'),
  used: whole('On all its GPUs together.'),
  peak: whole('The most that the living processes had, each at its worst time.'),
});

const TIME = object("GPU time, in percent of a GPU's, and in seconds.", {
  share: figure('Of each of its GPUs, as it was granted.'),
  used: figure('Got in the window.'),
  waiting: figure('Of the window, spent waiting for a turn.'),
  busySeconds: figure('Got since the container has its part.'),
  waitingSeconds: figure('Waited since then.'),
  policy: text(
    'burst: idle time of the GPU goes to whoever wants it; fixed: never more than the share.',
  ),
  priority: whole('Higher first, -100 to 100.'),
});

const CONTAINER = object('One container that asks for slots.', {
  name: text('Name of the container.'),
  slots: whole('Slots that it asks for.'),
  gpus: list(
    'GPUs of which it has a part. Empty: none yet.',
    object('One GPU.', {
      uuid: text('As the driver spells it.'),
      index: whole('As the driver counts.'),
      name: text('Name of its model.'),
    }),
  ),
  memory: MEMORY,
  time: TIME,
  sessions: whole('Processes that use the GPU.'),
  faults: whole('Faults of these processes.'),
});

const SLOTS = object('Slots.', {
  total: whole('All.'),
  used: whole('Held by pods.'),
  free: whole('For whoever asks.'),
});

const GPU_MEMORY = object('GPU memory, in bytes.', {
  total: whole('All of it.'),
  granted: whole('Quotas of the allocations.'),
  used: whole('In use by them.'),
});

const GPU = object('One GPU.', {
  uuid: text('As the driver spells it.'),
  index: whole('As the driver counts.'),
  name: text('Name of its model.'),
  mode: text('exclusive or concurrent.'),
  healthy: { type: 'boolean', description: 'Whether its slots can be had.' },
  slots: SLOTS,
  memory: GPU_MEMORY,
  time: object("Percent of the GPU's time.", {
    granted: figure('Shares of the allocations.'),
    used: figure('Got by them in the window.'),
  }),
  allocations: whole('Containers and others that have a part of it.'),
});

/** By kind. */
export const SCHEMAS: Readonly<Record<string, Schema>> = {
  PodGpuUsage: object('What a pod was granted of GPUs, and what it uses.', {
    ...COMMON,
    podUid: text('UID of the pod.'),
    state: text('Waiting, Starting, Idle, Active, Unknown or Ending.'),
    node: text('Node of the pod.'),
    slots: whole('Slots that it holds.'),
    containers: list('Its containers that ask for slots.', CONTAINER),
  }),
  NodeGpuUsage: object('What the GPUs of a node have, what of it was granted, and what is used.', {
    ...COMMON,
    state: text('Ready, Unhealthy or Silent.'),
    slots: SLOTS,
    memory: GPU_MEMORY,
    gpus: list('Its GPUs.', GPU),
  }),
};
