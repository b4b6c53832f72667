import { defineErrors } from '@nvidia-virtual/service/error-table';

/**
 * All that the extender and the webhook tell users: one code, one sentence. What begins with NODE_
 * or GPU_ says why a node cannot take a pod; kube-scheduler puts a count before it and commas
 * around it, so it has no full stop. docs/errors.md lists the same; a test compares the two. A code
 * is never reused for another meaning.
 */
const TABLE = {
  NODE_WITHOUT_GPUS: 'Nodes without a GPU that nvidia-virtual serves',
  NODE_INVENTORY_BROKEN:
    'Nodes whose annotation nvidia-virtual/inventory cannot be read: restart their device plugin',
  NODE_GPU_COUNT:
    'Nodes with {fitting} fitting GPUs, and container {container} asks for slots on {gpus}',
  NODE_CONTAINERS:
    "Nodes whose {gpus} GPUs are too few for the pod's {containers} containers, " +
    'even without other pods',
  NODE_CONTAINERS_NOW:
    "Nodes on whose GPUs the pod's {containers} containers find no room together: " +
    '{free} of {slots} slots are free',
  GPU_UUID: 'Nodes without GPU {uuids}',
  GPU_TYPE: 'Nodes whose GPUs are {models}, and the pod asks for type {types}',
  GPU_MODE: 'Nodes without a GPU in {mode} mode, for which container {container} asks',
  GPU_OVERSUBSCRIBED:
    'Nodes whose GPUs are oversubscribed, and container {container} asks for {gpus} GPUs: ' +
    'ask for one, or for nodes without oversubscription',
  GPU_SLOTS:
    'Nodes whose GPUs have {most} slots, and container {container} asks for {slots} on one: ' +
    'spread them by nvidia-virtual/gpus',
  GPU_MEMORY:
    'Nodes where {slots} slots of a GPU hold {held}, and container {container} asks for ' +
    '{memory}: ask for {needed} slots, or for less memory',
  GPU_CORES:
    'Nodes where {slots} slots allow {given}% of the time of a GPU, and container {container} ' +
    'asks for {cores}%: ask for {needed} slots, or for less time',
  GPU_UNHEALTHY: 'Nodes whose fitting GPUs are unhealthy ({unhealthy} of {gpus})',
  GPU_DRAINED: 'Nodes whose fitting GPUs are drained or unhealthy ({unhealthy} of {gpus})',
  GPU_FULL:
    'Nodes without {slots} free slots on {gpus} for container {container} (the most on one: ' +
    '{most} of {of})',
  GPU_UNKNOWN_USE:
    'Nodes without {slots} free slots on {gpus} for container {container}, ' +
    'because {held} slots are held by pods that another scheduler placed on unknown GPUs',
  NOT_READY:
    'Nothing is placed yet, because not all GPUs and pods of the cluster are known: ' +
    '{reason} kube-scheduler retries.',
  REQUEST_BROKEN:
    'The request to {path} is refused: {reason}. ' +
    'If kube-scheduler sent it, use the KubeSchedulerConfiguration of this version.',
  NODES_NOT_NAMES:
    'The scheduler sends whole nodes where names are expected: ' +
    'set nodeCacheCapable of the extender in its KubeSchedulerConfiguration.',
  POD_GONE: 'Pod {pod} no longer exists, so it is not bound.',
  POD_BOUND: 'Pod {pod} is bound to node {bound} already, so it is not bound to node {node}.',
  POD_REPLACED:
    'Pod {pod} was deleted and created again before it was bound. ' +
    'The new pod is scheduled separately.',
  POD_ASKS_NOTHING: 'Pod {pod} asks for no nvidia-virtual/gpu, so this extender does not bind it.',
  SLOTS_TAKEN:
    'Pod {pod} no longer fits node {node}, because another pod was bound first ({reason}). ' +
    'It is scheduled again.',
  BIND_FAILED: 'Pod {pod} was not bound to node {node}: {reason} Its slots are free again.',
  BIND_UNKNOWN:
    'The result of binding pod {pod} to node {node} is unknown: ' +
    '{reason} Its slots stay reserved until it is known.',
  GPU_LOST_EVICTION:
    'Pod {pod} is evicted, because GPU {gpu} of node {node} cannot be used. ' +
    'Its controller creates another pod.',
  GPU_LOST_EVICTION_REFUSED:
    'Pod {pod} has GPU {gpu} of node {node}, which cannot be used, and could not be evicted for ' +
    '{seconds} s: {reason} Let its PodDisruptionBudget allow an eviction, or delete the pod.',
  POD_STAYS:
    'Pod {pod} does not move to GPU {gpu}: {reason}. ' +
    'The scheduler tries again as long as the pod has the annotation nvidia-virtual/move-to.',
  DRAINED_STAYS:
    'Pod {pod} stays on GPU {gpu}, which is drained: {reason}. ' +
    'The scheduler tries again as long as the GPU is drained.',
  MOVE_OVERDUE:
    'Pod {pod} has not moved to GPU {gpu} in time, and goes back: while it moves, it holds slots ' +
    'of both GPUs. Its other events say what kept it. Try again by `kubectl gpu-usage move`.',
  ASSIGNED_FORBIDDEN:
    'The annotation nvidia-virtual/assigned says on which GPU a pod was placed, ' +
    'and only the scheduler {scheduler} may write it, not {user}: leave it out.',
  INVENTORY_FORBIDDEN:
    'The annotation nvidia-virtual/inventory says which GPUs a node has, ' +
    "and only that node's device plugin ({plugin}) may write it, not {user}: leave it out.",
  DRAINED_VALUE:
    'The annotation nvidia-virtual/drained-gpus names {value}, and node {node} has no such GPU: ' +
    '`kubectl gpu-usage drain {node} --gpu INDEX` writes the UUID of a GPU.',
  SHAPE_SETTLED:
    'The annotation {annotation} cannot change, because the pod was placed by it: ' +
    'create a new pod.',
  SUSPENDED_VALUE:
    'The annotation nvidia-virtual/suspended is "{value}", but must be true or false.',
  MOVE_VALUE:
    'The annotation nvidia-virtual/move-to is "{value}", but must be the UUID of a GPU: ' +
    '`kubectl gpu-usage move POD --gpu INDEX` finds it.',
  MOVE_UNPLACED:
    'The annotation nvidia-virtual/move-to moves a pod that our scheduler has placed, ' +
    'and this one is not: leave it out, and choose a GPU by nvidia-virtual/gpu-uuid.',
  MEMORY_WITHOUT_SLOTS:
    'The annotation nvidia-virtual/memory asks for memory of a GPU, but no container that it ' +
    'applies to requests nvidia-virtual/gpu: add it to the limits of the container. ' +
    'The webhook adds it to new pods if the chart sets node.slotMemory.',
  REVIEW_BROKEN: 'The AdmissionReview is not valid: {reason}.',
  CLIENT_AUTHORITY_UNREADABLE:
    '--client-authority {file} cannot be used: {reason}. ' +
    'Give a PEM file with the authority of client certificates.',
  TRANSLATION_NEEDS_MEMORY:
    'Container {container} requests a part of a GPU without {resource}. A slot has the same ' +
    'memory on every GPU of this cluster, so the number of slots is unknown: ' +
    'set {resource} in its limits.',
  TRANSLATION_NEEDS_SLOT_MEMORY:
    'Container {container} requests {resource} without nvidia.com/gpucores. A slot has another ' +
    'amount of memory on each model of GPU in this cluster, so the number of slots is unknown: ' +
    'set nvidia.com/gpucores or nvidia.com/gpumem-percentage, ' +
    'or ask the operator for node.slotMemory.',
  NOT_SERVED: '{address} cannot be served: {reason}. Choose another address by --listen.',
} as const satisfies Record<string, string>;

export type ErrorCode = keyof typeof TABLE;
export type Figures = Readonly<Record<string, string | number>>;

export class SchedulerError extends defineErrors('SchedulerError', TABLE) {}

export const sentence = SchedulerError.sentence;
