import { formatQuantity, readQuantity } from './quantity.js';

test.each([
  ['8Gi', 8 * 2 ** 30],
  ['500M', 500e6],
  ['1.5Gi', 1.5 * 2 ** 30],
  ['1e9', 1e9],
  ['2E3k', 2e6],
  [' 1Ki ', 1024],
  ['1', 1],
  ['1T', 1e12],
])('readQuantity() understands %j', (text, bytes) => {
  expect(readQuantity(text)).toBe(bytes);
});

test.each([
  '',
  '0',
  '0Gi',
  '-1',
  '8GB',
  '8gi',
  '8 Gi',
  '500m',
  '1.',
  '.5Gi',
  '0x10',
  '1e400',
  '9007199254740993',
  'Gi',
  '8Gi,',
  '١',
])('readQuantity() refuses %j', (text) => {
  expect(readQuantity(text)).toBeUndefined();
});

test.each([
  [8 * 2 ** 30, '8Gi'],
  [1.5 * 2 ** 30, '1.5Gi'],
  [2 ** 40, '1Ti'],
  [1023, '1023'],
  [0, '0'],
])('formatQuantity() writes %j', (bytes, text) => {
  expect(formatQuantity(bytes)).toBe(text);
});
