import { until } from '@nvidia-virtual/service/testing/eventually';
import type { Allocation } from '../allocations/allocation.js';

/**
 * Waits until no session is starting. A worker reports itself after its program's first call, so a
 * program may have printed something before.
 */
export function allBegun(allocation: Allocation): Promise<unknown> {
  return until(() => allocation.sessions.every(({ session }) => session.introduced));
}
