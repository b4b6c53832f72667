import { readFileSync } from 'node:fs';
import path from 'node:path';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { RedisLedger } from './redis-ledger.js';
import { RedisServer } from './testing/redis-server.js';
import { snapshot } from './testing/snapshots.js';

const README = path.resolve(import.meta.dirname, '../README.md');
const PREFIX = 'test:';
const TTL = 15_000;

interface Key {
  readonly key: string;
  readonly type: string;
}

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.remove());

test('README.md lists the keys with types and fields; all expire with the node', async () => {
  const ledger = new RedisLedger({
    redis: { ...server.place, prefix: PREFIX },
    writer: { node: 'NODE', owner: 'somebody' },
  });
  const truth = snapshot({ node: 'NODE', gpus: ['UUID'] });
  ledger.publish(truth);
  await eventually(async () => expect(await ledger.snapshots()).toHaveLength(1));
  const keys = await keysOf(server);
  expect(keys).toEqual(documentedKeys());
  for (const { key } of keys) {
    const left = Number(await server.command('PTTL', PREFIX + key));
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(TTL);
  }
  const fields = (await server.command('HKEYS', `${PREFIX}{ledger}:node:NODE`)) as string[];
  const row = readFileSync(README, 'utf8').match(/^\| `\{ledger\}:node:NODE` .*$/m)?.[0] as string;
  for (const field of fields) expect(row).toContain(`\`${field}\``);
  expect(await server.command('HGET', `${PREFIX}{ledger}:node:NODE`, 'snapshot')).toBe(
    JSON.stringify(truth),
  );
  await ledger.close();
});

function documentedKeys(): Key[] {
  const rows = readFileSync(README, 'utf8').matchAll(/^\| `(\{.+?\}:.+?)` \| (\w+) \| .+ \|$/gm);
  return sorted([...rows].map(([, key, type]) => ({ key: key as string, type: type as string })));
}

async function keysOf(redis: RedisServer): Promise<Key[]> {
  const names = (await redis.command('KEYS', `${PREFIX}*`)) as string[];
  const keys = names.map(async (name) => ({
    key: name.slice(PREFIX.length),
    type: (await redis.command('TYPE', name)) as string,
  }));
  return sorted(await Promise.all(keys));
}

function sorted(keys: Key[]): Key[] {
  return keys.sort((a, b) => (a.key < b.key ? -1 : 1));
}
