import { randomNumbers } from './random.js';

test('the same seed gives the same numbers, another seed other ones', () => {
  const take = (seed: number) => Array.from({ length: 5 }, randomNumbers(seed));
  expect(take(7)).toEqual(take(7));
  expect(take(7)).not.toEqual(take(8));
});

test('numbers are uniform in [0, 1), also for seed 0', () => {
  const next = randomNumbers(0);
  const numbers = Array.from({ length: 1000 }, next);
  expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...numbers)).toBeLessThan(1);
  const mean = numbers.reduce((sum, value) => sum + value) / numbers.length;
  expect(Math.abs(mean - 0.5)).toBeLessThan(0.05);
});
