// Which of several writers, and which of several commands of one writer, Redis accepts.
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { Redis } from 'ioredis';
import { keysIn, NodeEntry } from './node-entry.js';
import { RedisServer } from './testing/redis-server.js';
import { snapshot } from './testing/snapshots.js';

/** Milliseconds. No entry expires during a test. */
const TTL = 60_000;
const KEYS = keysIn('test:');
const ENTRY = KEYS.node('node-1');
const GPU = KEYS.gpu('GPU-1');

let server: RedisServer;
let client: Redis;

beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis({ path: server.socket });
});
afterAll(async () => {
  client.disconnect();
  await server.remove();
});
beforeEach(() => client.flushall());

function entryOf(owner: string, node = 'node-1'): NodeEntry {
  return new NodeEntry({ node, owner }, KEYS, TTL);
}

/** A later writer of the same owner, with a later clock. */
async function nextEntryOf(owner: string): Promise<NodeEntry> {
  const now = Date.now();
  await eventually(() => expect(Date.now()).toBeGreaterThan(now));
  return entryOf(owner);
}

async function put(entry: NodeEntry, memory: number): Promise<string> {
  return (await entry.put(client, snapshot({ memory })))?.code ?? 'written';
}

async function written(): Promise<unknown> {
  return JSON.parse((await client.hget(ENTRY, 'snapshot')) ?? '{}');
}

/** The version, which changes with each write of the snapshot. */
async function version(): Promise<string | null> {
  return client.hget(ENTRY, 'version');
}

test('an unchanged snapshot is not written again, only its TTL is renewed', async () => {
  const entry = entryOf('me');
  await put(entry, 1);
  const before = await version();
  for (const key of [ENTRY, GPU, KEYS.nodes]) await client.pexpire(key, TTL / 2);
  expect(await put(entry, 1)).toBe('written');
  expect(await version()).toBe(before);
  for (const key of [ENTRY, GPU, KEYS.nodes])
    expect(await client.pttl(key)).toBeGreaterThan(TTL / 2);
  expect(await put(entry, 2)).toBe('written');
  expect(await version()).not.toBe(before);
  expect(await written()).toEqual(JSON.parse(JSON.stringify(snapshot({ memory: 2 }))));
});

test('a claim of a GPU does not expire before the entry', async () => {
  const entry = entryOf('me');
  for (const memory of [1, 1, 2]) {
    await put(entry, memory);
    const [ofEntry, ofClaim] = (await client.multi().pttl(ENTRY).pttl(GPU).exec()) as [
      [null, number],
      [null, number],
    ];
    expect(ofClaim[1]).toBeGreaterThanOrEqual(ofEntry[1]);
  }
});

test.each([
  ['the entry', () => client.del(ENTRY)],
  ['the snapshot', () => client.hdel(ENTRY, 'snapshot')],
  ['its version', () => client.hset(ENTRY, 'version', 'of a late command')],
])('a renewal detects that %s is lost, and writes it again', async (_, lose) => {
  const entry = entryOf('me');
  await put(entry, 1);
  await lose();
  expect(await put(entry, 1)).toBe('written');
  expect(await written()).toMatchObject({ node: 'node-1' });
  const after = await version();
  await put(entry, 1);
  expect(await version()).toBe(after);
});

test('another owner is refused until the entry has expired', async () => {
  const [mine, yours] = [entryOf('me'), entryOf('you')];
  await put(mine, 1);
  const before = await client.hgetall(ENTRY);
  await client.del(GPU);
  expect(await put(yours, 2)).toBe('NODE_TAKEN');
  expect(await client.hgetall(ENTRY)).toEqual(before);
  expect(await client.exists(GPU)).toBe(0);
  await client.del(ENTRY);
  expect(await put(yours, 2)).toBe('written');
  expect(await put(mine, 1)).toBe('NODE_TAKEN');
});

test('a newer writer takes over, and the older one is refused until it expires', async () => {
  const older = entryOf('me');
  await put(older, 1);
  const newer = await nextEntryOf('me');
  expect(await put(newer, 2)).toBe('written');
  const before = await client.hgetall(ENTRY);
  for (const memory of [1, 3]) expect(await put(older, memory)).toBe('NODE_SUPERSEDED');
  expect(await client.hgetall(ENTRY)).toEqual(before);
  await client.del(ENTRY);
  expect(await put(older, 1)).toBe('written');
});

test('a GPU claimed by another node excludes a node with all its GPUs', async () => {
  await put(entryOf('me'), 1);
  const other = entryOf('you', 'node-2');
  const truth = snapshot({ node: 'node-2', gpus: ['GPU-2', 'GPU-1'] });
  expect((await other.put(client, truth))?.message).toBe(
    'Node node-1 already keeps GPU GPU-1. Node node-2 is left out of the ledger until the ' +
      'other has been silent for 60 s. Let one gpu-proxy serve each GPU.',
  );
  expect(await client.exists(KEYS.node('node-2'), KEYS.gpu('GPU-2'))).toBe(0);
  expect(await client.zrange(KEYS.nodes, 0, -1)).toEqual(['node-1']);
  await client.del(GPU);
  expect(await other.put(client, truth)).toBeUndefined();
});

test('if Redis is out of memory, the existing entry is still renewed', async () => {
  const entry = entryOf('me');
  await put(entry, 1);
  const before = await client.hgetall(ENTRY);
  await client.config('SET', 'maxmemory', '1');
  try {
    expect(await put(entry, 1)).toBe('written');
    await expect(put(entry, 2)).rejects.toThrow('OOM');
    expect(await client.hgetall(ENTRY)).toEqual(before);
  } finally {
    await client.config('SET', 'maxmemory', '0');
  }
  expect(await put(entry, 2)).toBe('written');
});

test('expired nodes are removed from the index', async () => {
  await put(entryOf('me'), 1);
  await client.zadd(KEYS.nodes, 1, 'long gone');
  await put(entryOf('me'), 1);
  expect(await client.zrange(KEYS.nodes, 0, -1)).toEqual(['node-1']);
});
