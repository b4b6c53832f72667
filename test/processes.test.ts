import { lookUntil } from './processes.js';

test('lookUntil() returns the first state that fulfils the condition', async () => {
  let looks = 0;
  const state = await lookUntil(
    async () => ++looks,
    (count) => count === 3,
    { everyMs: 0 },
  );
  expect([state, looks]).toEqual([3, 3]);
});

test('lookUntil() returns the last state after the timeout', async () => {
  let looks = 0;
  const never = () => false;
  expect(await lookUntil(() => ++looks, never, { milliseconds: -1 })).toBe(1);
});
