/**
 * Numbers in [0, 1) that depend only on the seed, so that a failed run can be repeated
 * (xorshift32).
 */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}
