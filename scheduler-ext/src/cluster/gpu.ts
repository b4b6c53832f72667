import type { InventoryGpu } from '@nvidia-virtual/kube-common/assignment';
import { type Model, modelOf } from './model.js';

export interface Gpu {
  readonly uuid: string;
  /** For case-insensitive comparison. */
  readonly lowerUuid: string;
  readonly model: Model;
  readonly healthy: boolean;
  /** It gets no pods, and its pods leave. */
  readonly drained: boolean;
  /** Slots in use, including those that may be. */
  used: number;
  /** The part of `used` that pods without a known GPU may have. */
  unknown: number;
}

export function gpuFrom(listed: InventoryGpu, drained: ReadonlySet<string>): Gpu {
  const { uuid, healthy } = listed;
  return {
    uuid,
    lowerUuid: uuid.toLowerCase(),
    model: modelOf(listed),
    healthy,
    drained: drained.has(uuid.toLowerCase()),
    used: 0,
    unknown: 0,
  };
}
