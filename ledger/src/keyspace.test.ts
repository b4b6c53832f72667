import { readFileSync } from 'node:fs';
import path from 'node:path';
import { RedisLedger } from './redis-ledger.js';
import { eventually } from './testing/eventually.js';
import { RedisServer } from './testing/redis-server.js';
import { snapshot } from './testing/snapshots.js';

const README = path.resolve(import.meta.dirname, '../README.md');
const PREFIX = 'test:';

interface Key {
  readonly key: string;
  readonly type: string;
  readonly expires: string;
}

/** What README.md says, in milliseconds. */
const DOCUMENTED = [
  ['30 days', 30 * 24 * 3600 * 1000],
  ['20 s after', 20_000],
  ['15 s after the lease', 30_000],
  ['5 s after the lease', 20_000],
  ['lease, 15 s', 15_000],
] as const;
const KINDS = [
  [0, 'never'],
  [15_000, 'with the lease'],
  [20_000, 'soon after the lease'],
  [30_000, 'after twice the lease'],
] as const;

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.remove());

test('README.md lists the keys that are in Redis after a publication: names, types, what is in a hash, when they expire', async () => {
  const ledger = new RedisLedger({ redis: { ...server.place, prefix: PREFIX }, writer: { node: 'NODE', owner: 'somebody' } });
  const truth = snapshot({ node: 'NODE', gpus: ['UUID'] });
  ledger.publish(truth);
  await eventually(async () => expect(await ledger.nodes()).toHaveLength(1));
  expect(await keysOf(server)).toEqual(documentedKeys());
  const fields = (await server.command('HKEYS', `${PREFIX}{NODE}:lease`)) as string[];
  const row = readFileSync(README, 'utf8').match(/^\| `\{NODE\}:lease` .*$/m)?.[0] as string;
  for (const field of fields) expect(row).toContain(`\`${field}\``);
  expect(await server.command('HGET', `${PREFIX}{NODE}:gpus`, 'UUID')).toBe(JSON.stringify(truth.gpus[0]));
  expect(await server.command('HEXISTS', `${PREFIX}{NODE}:use`, '0000000000000001/3')).toBe(1);
  await ledger.close();
});

test('after a withdrawal nothing is left but the number of the last writer', async () => {
  const ledger = new RedisLedger({ redis: { ...server.place, prefix: 'other:' }, writer: { node: 'NODE', owner: 'somebody' } });
  ledger.publish(snapshot({ node: 'NODE' }));
  await eventually(async () => expect(await ledger.nodes()).toHaveLength(1));
  await ledger.close({ withdraw: true });
  expect(await server.command('KEYS', 'other:*')).toEqual(['other:{NODE}:instance']);
});

function documentedKeys(): Key[] {
  const rows = readFileSync(README, 'utf8').matchAll(/^\| `(\{.+?\}:.+?)` \| (\w+) \| .+ \| (.+) \|$/gm);
  return sorted(
    [...rows].map(([, key, type, expires]) => ({ key: key as string, type: type as string, expires: kindOf(expires as string) })),
  );
}

async function keysOf(redis: RedisServer): Promise<Key[]> {
  const names = (await redis.command('KEYS', `${PREFIX}*`)) as string[];
  const keys = names.map(async (name) => ({
    key: name.slice(PREFIX.length),
    type: (await redis.command('TYPE', name)) as string,
    expires: kindOf(Number(await redis.command('PTTL', name))),
  }));
  return sorted(await Promise.all(keys));
}

/** Apart by what the lease of 15 s is: within it, soon after it, or long after. */
function kindOf(expires: string | number): string {
  const least = typeof expires === 'number' ? expires : (DOCUMENTED.find(([words]) => expires.includes(words))?.[1] ?? -1);
  return KINDS.find(([most]) => least <= most)?.[1] ?? 'long after';
}

function sorted(keys: Key[]): Key[] {
  return keys.sort((a, b) => (a.key < b.key ? -1 : 1));
}
