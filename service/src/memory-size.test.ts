import { formatMemorySize, readMemorySize } from './memory-size.js';

test.each([
  ['512MiB', 512 * 2 ** 20],
  ['1.5GiB', 1.5 * 2 ** 30],
  ['1 GB', 1e9],
  ['4096', 4096],
  ['64kib', 65536],
  ['10B', 10],
  ['2TiB', 2 * 2 ** 40],
])('readMemorySize() understands %s', (value, bytes) => {
  expect(readMemorySize(value)).toBe(bytes);
});

test.each(['', '0', '0MiB', '-1MiB', '5 apples', 'MiB', '1e9', '1,5GiB', '0.1B', '99999999TiB'])(
  'readMemorySize() refuses %j',
  (value) => {
    expect(readMemorySize(value)).toBeUndefined();
  },
);

test.each([
  [1, '1 byte'],
  [1000, '1000 bytes'],
  [512 * 2 ** 20, '512 MiB'],
  [1.5 * 2 ** 30, '1.5 GiB'],
  [2 ** 20 + 1, '1 MiB'],
])('formatMemorySize() formats %d bytes', (bytes, text) => {
  expect(formatMemorySize(bytes)).toBe(text);
});
