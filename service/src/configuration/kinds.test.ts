import {
  address,
  allocationName,
  duration,
  factor,
  forGpu,
  type Kind,
  memoryLimit,
  nodeName,
  percent,
  perGpu,
  redisUrl,
  uidRange,
  wholeNumber,
} from './kinds.js';

const UUID = 'GPU-01234567-89ab-cdef-0123-456789abcdef';
const window = duration('1ms', '100ms');
const count = wholeNumber(-100, 100);

test.each<[Kind<unknown>, string, unknown]>([
  [percent, '25', 25],
  [percent, '100%', 100],
  [percent, '1 %', 1],
  [window, '5ms', 5000],
  [window, '1500us', 1500],
  [window, '0.1 s', 100_000],
  [count, '-100', -100],
  [factor(1, 4), '1.25', 1.25],
  [factor(1, 4), '4', 4],
  [memoryLimit, '0', 0],
  [memoryLimit, '1.5GiB', 1.5 * 2 ** 30],
  [nodeName, 'node-1.example_2', 'node-1.example_2'],
  [allocationName, 'training/job-7', 'training/job-7'],
  [uidRange, '100000-165535', { first: 100_000, last: 165_535 }],
  [redisUrl, 'rediss://redis.example:6380/2', 'rediss://redis.example:6380/2'],
  [redisUrl, 'redis://[::1]', 'redis://[::1]'],
  [redisUrl, 'unix:///run/redis.sock', 'unix:///run/redis.sock'],
  [address, '127.0.0.1:9400', { host: '127.0.0.1', port: 9400 }],
  [address, '[::1]:0', { host: '::1', port: 0 }],
  [address, ':9400', { port: 9400 }],
  [address, '/run/x/../http.sock', { path: '/run/http.sock' }],
])('%# parses %j', (kind, text, value) => {
  expect(kind.entry(text)).toEqual(value);
});

test.each<[Kind<unknown>, readonly string[]]>([
  [percent, ['0', '101', '-5', '2.5', '25 percent', '']],
  [window, ['0.9ms', '101ms', '5', '5 m', '-5ms', '']],
  [count, ['101', '1e1', '0x10', '', '1.0', 'many']],
  [factor(1, 4), ['0.99', '4.01', '1.125', '', '1e0', '+2', '150%']],
  [memoryLimit, ['', '-1', '0GiB', 'half', 'none']],
  [nodeName, ['', '-x', 'a b', 'a/b', 'x'.repeat(254), 'ä']],
  [allocationName, ['/x', 'x'.repeat(129)]],
  [
    uidRange,
    ['0-65535', '1000-65535', '65534-65534', '2000-1999', '100000', '1000-4294967295', ''],
  ],
  [
    redisUrl,
    [
      'redis://user:secret@host',
      'http://localhost',
      'redis:',
      'redis://host/x',
      'redis://host?tls=1',
      'host:6379',
      'redis://host:65536',
      'REDISS://host',
      'unix://run',
    ],
  ],
  [address, ['9400', ':', ':65536', '[]:9400', 'host', 'host:65536', '::1:9400', 'http.sock', '']],
])('%# refuses invalid values', (kind, texts) => {
  expect(texts.filter((text) => kind.entry(text) !== undefined)).toEqual([]);
});

describe('perGpu()', () => {
  const kind = perGpu(wholeNumber(0, 64));
  const values = kind.combine(
    ['1', '0=2', `${UUID.toUpperCase()}=3`].map((text) => kind.entry(text)),
  );

  test('a value by UUID wins over one by index, and that over the value for all GPUs', () => {
    expect(forGpu(values, { uuid: UUID, index: 0 }, 9)).toBe(3);
    expect(forGpu(values, { uuid: 'GPU-another', index: 0 }, 9)).toBe(2);
    expect(forGpu(values, { uuid: 'GPU-another', index: 1 }, 9)).toBe(1);
  });

  test('a GPU without a value has the default of the caller', () => {
    expect(forGpu(kind.combine([kind.entry('0=0')]), { uuid: UUID, index: 1 }, 9)).toBe(9);
  });

  test.each(['=1', 'GPU-1=1', '0=', '0=65', '0=1=2', ''])('%j is refused', (text) => {
    expect(kind.entry(text)).toBeUndefined();
  });
});
