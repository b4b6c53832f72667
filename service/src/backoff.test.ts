import { Backoff } from './backoff.js';

test('Backoff doubles the delay up to the maximum and starts over after reset()', () => {
  const backoff = new Backoff({ first: 100, longest: 350 });
  expect([backoff.next(), backoff.next(), backoff.next(), backoff.next()]).toEqual([
    100, 200, 350, 350,
  ]);
  backoff.reset();
  expect(backoff.next()).toBe(100);
});

test('jitter shortens a delay by up to half', () => {
  const backoff = new Backoff({ first: 100, longest: 100, jitter: true });
  for (let i = 0; i < 100; i++) {
    const delay = backoff.next();
    expect(delay).toBeGreaterThan(50);
    expect(delay).toBeLessThanOrEqual(100);
  }
});
