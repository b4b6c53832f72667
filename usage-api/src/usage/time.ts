import type { Rate } from './figures.js';

/** As Kubernetes writes a time: to the second. */
export function timestamp(time: Date | string | number): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`;
}

/** Allocations of one node are compared over the same time, except those that are younger. */
export function windowSeconds(
  allocations: readonly ({ readonly rate: Rate | undefined } | undefined)[],
): { windowSeconds?: number } {
  const windows = allocations.flatMap((one) => one?.rate?.seconds ?? []);
  return windows.length === 0 ? {} : { windowSeconds: Math.max(...windows) };
}
