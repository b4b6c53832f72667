import { ExchangeHistory } from './exchange-history.js';

const MINUTE = 60_000;

test('the share of the last five minutes during which memory moved', () => {
  const history = new ExchangeHistory();
  expect(history.share(0)).toBe(0);
  history.note(false, 0);
  history.note(true, MINUTE);
  history.note(true, 1.5 * MINUTE);
  expect(history.share(2 * MINUTE)).toBe(0.5);
  history.note(false, 3 * MINUTE);
  expect(history.share(4 * MINUTE)).toBe(0.5);
  expect(history.share(7 * MINUTE)).toBe(0.2);
  history.note(true, 7.5 * MINUTE);
  history.note(false, 8 * MINUTE);
  expect(history.share(9 * MINUTE)).toBe(0.1);
  expect(history.share(20 * MINUTE)).toBe(0);
});
