/** The names by which Kubernetes and its users know us. */

/**
 * What a pod asks for: slots. Whole numbers, requests equal to limits, as for every extended
 * resource.
 */
export const RESOURCE = 'nvidia-virtual/gpu';

/**
 * Annotations of a pod, by what they say. The user writes them; `assigned` is our scheduler's
 * alone.
 */
export const ANNOTATION = {
  memory: 'nvidia-virtual/memory',
  cores: 'nvidia-virtual/cores',
  gpus: 'nvidia-virtual/gpus',
  policy: 'nvidia-virtual/policy',
  mode: 'nvidia-virtual/mode',
  gpuType: 'nvidia-virtual/gpu-type',
  gpuUuid: 'nvidia-virtual/gpu-uuid',
  assigned: 'nvidia-virtual/assigned',
} as const;

/** Annotation of a node: its GPUs, written by its device plugin. */
export const INVENTORY_ANNOTATION = 'nvidia-virtual/inventory';

/**
 * Annotation of a pod that waits: when our scheduler was last told to try it again. It means
 * nothing to anybody.
 */
export const RETRIED_ANNOTATION = 'nvidia-virtual/retried';

/**
 * Annotation of the pod by which a kubelet shows a static pod to the API server: the UID that the
 * kubelet has for it, and keeps.
 */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

export const SCHEDULER_NAME = 'nvidia-virtual-scheduler';
