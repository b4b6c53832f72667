import { formatMemorySize, parseMemorySize } from './memory-size.js';

test.each([
  ['512MiB', 512 * 2 ** 20],
  ['1.5GiB', 1.5 * 2 ** 30],
  ['1 GB', 1e9],
  ['4096', 4096],
  ['64kib', 65536],
  ['10B', 10],
  ['2TiB', 2 * 2 ** 40],
])('parseMemorySize() understands %s', (value, bytes) => {
  expect(parseMemorySize('--memory', value)).toBe(bytes);
});

test.each(['', '0', '0MiB', '-1MiB', '5 apples', 'MiB', '1e9', '1,5GiB', '0.1B', '99999999TiB'])(
  'parseMemorySize() refuses %j',
  (value) => {
    expect(() => parseMemorySize('--memory', value)).toThrow(
      `--memory is ${JSON.stringify(value)}, which is no memory size: give a number above 0 with B, KB`,
    );
  },
);

test.each([
  [1, '1 byte'],
  [1000, '1000 bytes'],
  [512 * 2 ** 20, '512 MiB'],
  [1.5 * 2 ** 30, '1.5 GiB'],
  [2 ** 20 + 1, '1 MiB'],
])('formatMemorySize() says %d bytes shortly', (bytes, text) => {
  expect(formatMemorySize(bytes)).toBe(text);
});
