import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { LedgerError } from './errors.js';
import { type RedisOptions, readOptionFile, redisTarget } from './redis-options.js';

test('nothing at all means this machine', () => {
  expect(redisTarget({})).toMatchObject({
    host: '127.0.0.1',
    port: 6379,
    database: 0,
    prefix: 'nvidia-virtual:',
    connectTimeout: 2000,
    answerTimeout: 3000,
    address: '127.0.0.1:6379',
  });
  expect(redisTarget({}).tls).toBeUndefined();
});

test.each<[RedisOptions, Partial<ReturnType<typeof redisTarget>>]>([
  [{ url: 'redis://redis' }, { host: 'redis', port: 6379, username: undefined, password: undefined, tls: undefined }],
  [{ url: 'redis://:p%40ss@redis:7000/3' }, { host: 'redis', port: 7000, password: 'p@ss', database: 3, address: 'redis:7000' }],
  [{ url: 'redis://me:secret@[::1]:7000' }, { host: '::1', username: 'me', password: 'secret', address: '[::1]:7000' }],
  [{ url: 'rediss://redis' }, { tls: { caFile: undefined, certificateFile: undefined, keyFile: undefined, serverName: undefined } }],
  [{ url: 'unix:///run/redis.sock' }, { socket: '/run/redis.sock', address: '/run/redis.sock' }],
  [
    { url: 'redis://redis:7000/3', host: 'other', database: 1, password: 'secret' },
    { host: 'other', port: 7000, database: 1, password: 'secret' },
  ],
  [
    { url: 'redis://me@redis', passwordFile: '/secret' },
    { username: 'me', password: undefined, passwordFile: '/secret' },
  ],
  [{ caFile: '/ca.pem' }, { tls: { caFile: '/ca.pem', certificateFile: undefined, keyFile: undefined, serverName: undefined } }],
])('redisTarget(%j)', (options, expected) => {
  expect(redisTarget(options)).toMatchObject(expected);
});

test.each<[RedisOptions, string]>([
  [{ url: 'http://localhost' }, 'redis.url is http:...: allowed are redis://host:port, rediss://host:port and unix:///path.'],
  [{ url: 'redis' }, 'redis.url is no URL: allowed are'],
  [{ url: 'redis://redis/one' }, 'redis.database is NaN: allowed are whole numbers from 0 to 2147483647.'],
  [{ port: 0 }, 'redis.port is 0: allowed are whole numbers from 1 to 65535.'],
  [{ answerTimeout: 1.5 }, 'redis.answerTimeout is 1.5: allowed are whole numbers from 1 to 600000.'],
  [{ prefix: 'a{b}' }, 'redis.prefix is "a{b}": allowed is anything without braces and spaces.'],
  [{ password: 'secret', passwordFile: '/f' }, 'redis.passwordFile is /f: a password was given too, and only one of the two can be meant.'],
  [{ username: 'me' }, 'redis.username is me: it needs a password or a password file beside it.'],
  [{ tls: false, caFile: '/ca.pem' }, 'redis.caFile is /ca.pem: it is of use only with TLS, which is off.'],
  [{ certificateFile: '/c.pem' }, 'redis.keyFile is missing: certificate and key are given together.'],
  [{ socket: '/run/redis.sock', tls: true }, 'redis.tls is true: a Unix socket has no TLS.'],
])('redisTarget(%j) is refused', (options, sentence) => {
  expect(() => redisTarget(options)).toThrow(sentence);
  expect(() => redisTarget(options)).toThrow(LedgerError);
});

test('no sentence holds a password', () => {
  let sentence = '';
  try {
    redisTarget({ url: 'redis://me:secret@redis:7000/x' });
  } catch (error) {
    sentence = (error as Error).message;
  }
  expect(sentence).not.toBe('');
  expect(sentence).not.toContain('secret');
  expect(redisTarget({ url: 'redis://me:secret@redis' }).address).not.toContain('secret');
});

test('readOptionFile() names the option and the file', () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'nvidia-virtual-ledger-'));
  expect(() => readOptionFile('caFile', path.join(directory, 'ca.pem'))).toThrow(
    `caFile names ${directory}/ca.pem, which cannot be read: no such file.`,
  );
  expect(() => readOptionFile('caFile', directory)).toThrow('cannot be read: EISDIR');
  rmSync(directory, { recursive: true });
});
