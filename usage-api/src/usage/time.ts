import type { Rate } from './figures.js';

/** A time in Kubernetes' format, to the second. */
export function timestamp(time: Date | string | number): string {
  return `${new Date(time).toISOString().slice(0, 19)}Z`;
}

/** Allocations of one node share a window, except young ones. The longest is reported. */
export function windowSeconds(
  allocations: readonly ({ readonly rate: Rate | undefined } | undefined)[],
): { windowSeconds?: number } {
  const windows = allocations.flatMap((one) => one?.rate?.seconds ?? []);
  return windows.length === 0 ? {} : { windowSeconds: Math.max(...windows) };
}
