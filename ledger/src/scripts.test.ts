import { Redis } from 'ioredis';
import { BEGIN, WRITE } from './scripts.js';
import { RedisServer } from './testing/redis-server.js';

/** What decides which of two writers, or of two commands of one, counts. */
const TABLES = 5;
const LEASE = 'lease';
const KEYS = [LEASE, ...Array.from({ length: TABLES }, (_, index) => `table-${index}`)];

let server: RedisServer;
let client: Redis;

beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis({ path: server.place.socket as string });
});
afterAll(async () => {
  client.disconnect();
  await server.remove();
});
beforeEach(() => client.flushall());

interface Attempt {
  readonly owner?: string;
  readonly instance?: number;
  /** -1: anew. */
  readonly from: number;
  readonly to: number;
  /** Of the first table. */
  readonly rows?: Readonly<Record<string, string>>;
  readonly remove?: readonly string[];
  readonly size: number;
}

function write({ owner = 'me', instance = 1, from, to, rows = {}, remove = [], size }: Attempt): Promise<unknown> {
  const first = [Object.keys(rows).length, ...Object.entries(rows).flat(), remove.length, ...remove];
  const others = Array.from({ length: 2 * (TABLES - 1) }, () => 0);
  return WRITE.run(client, KEYS, [owner, instance, from, to, 10_000, 20_000, `${size} 0 0 0 0`, ...first, ...others]);
}

function rows(): Promise<Record<string, string>> {
  return client.hgetall('table-0');
}

test('differences follow each other', async () => {
  expect(await write({ from: -1, to: 1, rows: { a: '1', b: '2' }, size: 2 })).toBe('written');
  expect(await write({ from: 1, to: 2, rows: { b: '3', c: '4' }, remove: ['a'], size: 2 })).toBe('written');
  expect(await rows()).toEqual({ b: '3', c: '4' });
});

test('a difference to something else than what is there does nothing', async () => {
  expect(await write({ from: 1, to: 2, rows: { a: '1' }, size: 1 })).toBe('anew');
  expect(await write({ from: -1, to: 1, rows: { a: '1' }, size: 1 })).toBe('written');
  expect(await write({ from: 2, to: 3, rows: { a: '2' }, size: 1 })).toBe('anew');
  expect(await rows()).toEqual({ a: '1' });
  await client.hset('table-0', 'stray', '1');
  expect(await write({ from: 1, to: 2, rows: { a: '2' }, size: 1 })).toBe('anew');
});

test('anew removes what was there', async () => {
  await write({ from: -1, to: 1, rows: { a: '1', b: '2' }, size: 2 });
  expect(await write({ from: -1, to: 2, rows: { c: '3' }, size: 1 })).toBe('written');
  expect(await rows()).toEqual({ c: '3' });
});

test('a command that was held up does nothing when it comes after a later one', async () => {
  await write({ from: -1, to: 2, rows: { a: 'new' }, size: 1 });
  expect(await write({ from: -1, to: 1, rows: { a: 'old' }, size: 1 })).toBe('anew');
  expect(await write({ from: -1, to: 2, rows: { a: 'again' }, size: 1 })).toBe('anew');
  expect(await rows()).toEqual({ a: 'new' });
});

test('a newer writer of the same owner takes over, an older one does nothing', async () => {
  await write({ instance: 5, from: -1, to: 9, rows: { a: 'five' }, size: 1 });
  expect(await write({ instance: 6, from: 9, to: 10, rows: { a: 'six' }, size: 1 })).toBe('anew');
  expect(await write({ instance: 6, from: -1, to: 1, rows: { a: 'six' }, size: 1 })).toBe('written');
  expect(await write({ instance: 5, from: -1, to: 11, rows: { a: 'five' }, size: 1 })).toBe('superseded');
  expect(await write({ instance: 5, from: 1, to: 2, rows: { a: 'five' }, size: 1 })).toBe('superseded');
  expect(await rows()).toEqual({ a: 'six' });
});

test('another owner waits for the end of the lease', async () => {
  await write({ from: -1, to: 1, rows: { a: 'mine' }, size: 1 });
  expect(await write({ owner: 'you', instance: 9, from: -1, to: 1, rows: { a: 'yours' }, size: 1 })).toBe('taken');
  expect(await rows()).toEqual({ a: 'mine' });
  await client.del(LEASE);
  expect(await write({ owner: 'you', instance: 9, from: -1, to: 1, rows: { a: 'yours' }, size: 1 })).toBe('written');
  expect(await rows()).toEqual({ a: 'yours' });
});

test('a renewal changes nothing but the time that is left', async () => {
  await write({ from: -1, to: 1, rows: { a: '1' }, size: 1 });
  await client.pexpire(LEASE, 100);
  await client.pexpire('table-0', 100);
  expect(await write({ from: 1, to: 1, size: 1 })).toBe('written');
  expect(await client.pttl(LEASE)).toBeGreaterThan(1000);
  expect(await client.pttl('table-0')).toBeGreaterThan(await client.pttl(LEASE));
  expect(await client.hget(LEASE, 'revision')).toBe('1');
});

test('a write that finds no memory does nothing at all', async () => {
  await write({ from: -1, to: 1, rows: { a: '1', b: '2' }, size: 2 });
  await client.config('SET', 'maxmemory', '1');
  await expect(write({ from: 1, to: 2, rows: { c: '3' }, remove: ['a'], size: 2 })).rejects.toThrow('OOM');
  await expect(write({ from: -1, to: 2, rows: { c: '3' }, size: 1 })).rejects.toThrow('OOM');
  expect(await write({ from: 1, to: 1, size: 2 })).toBe('written');
  await client.config('SET', 'maxmemory', '0');
  expect(await rows()).toEqual({ a: '1', b: '2' });
});

test('writers are numbered upwards, also when everything was deleted, and when the clock was ahead', async () => {
  const begin = async () => Number(await BEGIN.run(client, ['instance'], [60_000]));
  const [first, second] = [await begin(), await begin()];
  expect(second).toBeGreaterThan(first);
  await client.flushall();
  // It follows the clock, and no millisecond has two numbers of one counter.
  expect(await begin()).toBeGreaterThanOrEqual(first);
  const ahead = Date.now() + 1e9;
  await client.set('instance', String(ahead));
  expect(await begin()).toBe(ahead + 1);
  expect(await client.get('instance')).toBe(String(ahead + 1));
});
