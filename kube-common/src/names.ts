/** Names used in Kubernetes objects. */

/**
 * The extended resource that a pod requests: slots. Integers; requests equal limits.
 */
export const RESOURCE = 'nvidia-virtual/gpu';

/**
 * Annotations of a pod. The user writes them, except `assigned`, which only the scheduler writes.
 */
export const ANNOTATION = {
  memory: 'nvidia-virtual/memory',
  cores: 'nvidia-virtual/cores',
  gpus: 'nvidia-virtual/gpus',
  policy: 'nvidia-virtual/policy',
  priority: 'nvidia-virtual/priority',
  mode: 'nvidia-virtual/mode',
  latency: 'nvidia-virtual/latency',
  gpuType: 'nvidia-virtual/gpu-type',
  gpuUuid: 'nvidia-virtual/gpu-uuid',
  placement: 'nvidia-virtual/placement',
  trace: 'nvidia-virtual/trace',
  suspended: 'nvidia-virtual/suspended',
  moveTo: 'nvidia-virtual/move-to',
  assigned: 'nvidia-virtual/assigned',
} as const;

/** Annotation of a node with its GPUs, written by its device plugin. */
export const INVENTORY_ANNOTATION = 'nvidia-virtual/inventory';

/**
 * Annotation of a node: UUIDs of GPUs that get no new pods, and that pods leave, separated by
 * commas. An administrator writes it.
 */
export const DRAINED_ANNOTATION = 'nvidia-virtual/drained-gpus';

/** Condition of a node, written by its device plugin: True while a GPU cannot be used. */
export const GPU_LOST_CONDITION = 'NvidiaVirtualGpuLost';

/**
 * Annotation of a node with what is wrong with it, as a JSON list of sentences, written by its
 * device plugin. Missing: nothing is wrong.
 */
export const PROBLEMS_ANNOTATION = 'nvidia-virtual/problems';

/**
 * Annotation of a waiting pod: the time of its last retry. Nothing reads it; the write makes
 * kube-scheduler retry the pod.
 */
export const RETRIED_ANNOTATION = 'nvidia-virtual/retried';

/**
 * Annotation of the mirror pod of a static pod: the UID that the kubelet uses for the static pod.
 */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

export const SCHEDULER_NAME = 'nvidia-virtual-scheduler';
