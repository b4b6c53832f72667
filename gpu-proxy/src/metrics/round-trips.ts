import type { RoundTrips } from './totals.js';

/** About 1 us and 1 s. Shorter ones count in the first bucket, longer ones only in +Inf. */
const FIRST_EXPONENT = 10;
const LAST_EXPONENT = 30;
const NANOSECOND = 1e-9;

interface Histogram {
  /** Cumulative, by upper bound in seconds. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
  readonly count: number;
  readonly sum: number;
}

/**
 * Converts to a Prometheus histogram: cumulative, in seconds. The sum uses the middle of each
 * bucket.
 */
export function toHistogram(roundTrips: RoundTrips): Histogram {
  const below = (exponent: number) => total(roundTrips.slice(0, exponent));
  const exponents = Array.from(
    { length: LAST_EXPONENT - FIRST_EXPONENT + 1 },
    (_, index) => FIRST_EXPONENT + index,
  );
  return {
    buckets: exponents.map((exponent) => ({ le: 2 ** exponent / 1e9, count: below(exponent) })),
    count: total(roundTrips),
    sum: total(roundTrips.map((count, exponent) => count * 1.5 * 2 ** exponent)) * NANOSECOND,
  };
}

function total(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}
