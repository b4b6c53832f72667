import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { LedgerError } from './errors.js';
import { readOptionFile, redisTarget } from './redis-options.js';

test('only the URL is required', () => {
  expect(redisTarget({ url: 'redis://redis' })).toEqual({
    url: 'redis://redis',
    place: { host: 'redis', port: 6379 },
    tls: false,
    database: 0,
    prefix: 'nvidia-virtual:',
    connectTimeout: 2000,
    answerTimeout: 3000,
    address: 'redis:6379',
  });
});

test.each<[string, Partial<ReturnType<typeof redisTarget>>]>([
  ['redis://redis:7000/3', { place: { host: 'redis', port: 7000 }, database: 3 }],
  ['redis://[::1]:7000', { place: { host: '::1', port: 7000 }, address: '[::1]:7000' }],
  ['rediss://redis', { place: { host: 'redis', port: 6379 }, tls: true }],
  ['unix:///run/my%20redis.sock', { place: { path: '/run/my redis.sock' }, tls: false }],
])('redisTarget() of %s', (url, expected) => {
  expect(redisTarget({ url })).toMatchObject(expected);
});

test.each([
  ['http://localhost', 'http:...'],
  ['redis', 'no URL'],
  ['redis://redis/one', 'redis:...'],
  ['redis://me:secret@redis', 'redis:...'],
  ['unix://run/redis.sock', 'unix:...'],
])('%s is refused, without a password in the message', (url, value) => {
  expect(() => redisTarget({ url })).toThrow(LedgerError);
  expect(() => redisTarget({ url })).toThrow(
    `redis.url is ${value}: allowed are redis://host[:port][/database], rediss:// for TLS, ` +
      `and unix:///path.`,
  );
});

test('readOptionFile() names the option and the file', () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'nvidia-virtual-ledger-'));
  expect(() => readOptionFile('caFile', path.join(directory, 'ca.pem'))).toThrow(
    `caFile names ${directory}/ca.pem, which cannot be read: no such file.`,
  );
  expect(() => readOptionFile('caFile', directory)).toThrow('cannot be read: EISDIR');
  rmSync(directory, { recursive: true });
});
