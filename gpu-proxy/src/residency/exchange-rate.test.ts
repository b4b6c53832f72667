import { ExchangeRate } from './exchange-rate.js';

const GIB = 2 ** 30;

/** Milliseconds for 1 GB after moves at this rate, in bytes per millisecond. */
function timeAt(rate: number, bytes = GIB): number {
  const measured = new ExchangeRate();
  for (let move = 0; move < 50; move++) measured.observe(bytes, bytes / rate);
  return measured.timeOf(1e9);
}

test('the measured rate replaces the expected one, within limits', () => {
  expect(new ExchangeRate().timeOf(1e9)).toBe(20);
  expect(timeAt(25e6)).toBeCloseTo(40);
  expect(timeAt(1e6)).toBe(100);
  expect(timeAt(1e9)).toBe(10);
});

test('small moves, and such that took no time, tell nothing', () => {
  expect(timeAt(1e6, GIB / 8)).toBe(20);
  expect(timeAt(Number.POSITIVE_INFINITY)).toBe(20);
});
