import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { LedgerError } from './errors.js';
import type { WriterIdentity } from './node-entry.js';
import type { NodeSnapshot } from './records.js';
import { RedisLedger } from './redis-ledger.js';
import { RedisServer } from './testing/redis-server.js';
import { sessionsOf, snapshot } from './testing/snapshots.js';

/** For tests that wait until a node expires. */
const SHORT_TTL = 3000;
const INDEX = 'nvidia-virtual:{ledger}:nodes';
const BROKEN = 'nvidia-virtual:{ledger}:node:broken';

let server: RedisServer;
let reader: RedisLedger;
let open: RedisLedger[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.remove());
beforeEach(async () => {
  await server.command('FLUSHALL');
  reader = keep(new RedisLedger({ redis: server.place }));
});
afterEach(async () => {
  await Promise.all(open.map((ledger) => ledger.close()));
  open = [];
});

function keep(ledger: RedisLedger): RedisLedger {
  open.push(ledger);
  return ledger;
}

function openWriter(writer: WriterIdentity, ttl?: number): RedisLedger {
  return keep(new RedisLedger({ redis: server.place, writer, ...(ttl ? { ttl } : {}) }));
}

function writer(node = 'node-1', owner = `owner of ${node}`, ttl?: number): RedisLedger {
  return openWriter({ node, owner }, ttl);
}

/** Collects code and sentence of each emitted refusal. */
function refusalsOf(ledger: RedisLedger): string[] {
  const refusals: string[] = [];
  ledger.on(
    'state',
    (state, sentence, error) =>
      state === 'refused' && refusals.push(error?.code as string, sentence),
  );
  return refusals;
}

/** JSON has no properties that are undefined, which toEqual() ignores. */
async function reads(...truths: readonly NodeSnapshot[]): Promise<void> {
  await eventually(async () =>
    expect(await reader.snapshots()).toEqual(
      truths.map((truth) => ({ ...truth, age: expect.any(Number) })),
    ),
  );
}

test('a published snapshot can be read', async () => {
  writer().publish(snapshot());
  await reads(snapshot());
});

test('an unknown node has no snapshot', async () => {
  expect(await reader.snapshots()).toEqual([]);
});

test('a later publication replaces an earlier one completely', async () => {
  const ledger = writer();
  const first = snapshot({ allocations: 3, sessions: 4 });
  ledger.publish(first);
  await reads(first);
  for (const memory of [1, 2, 3, 4])
    ledger.publish(snapshot({ allocations: 1, sessions: 2, memory }));
  await reads(snapshot({ allocations: 1, sessions: 2, memory: 4 }));
});

test('a node can be empty', async () => {
  const empty = snapshot({ gpus: [], allocations: 0 });
  writer().publish(empty);
  await reads(empty);
});

test('several nodes are sorted by name', async () => {
  const [first, second] = [
    snapshot({ node: 'node-1', gpus: ['GPU-1'] }),
    snapshot({ node: 'node-2', gpus: ['GPU-2'], allocations: 1 }),
  ];
  writer('node-2').publish(second);
  await reads(second);
  writer('node-1').publish(first);
  await reads(first, second);
});

test('1,000 allocations with 10,000 sessions fit', async () => {
  const large = snapshot({ allocations: 1000, sessions: 10 });
  const ledger = writer();
  ledger.publish(large);
  await eventually(async () => expect(await reader.snapshots()).toHaveLength(1));
  expect(await reader.snapshots()).toEqual([{ ...large, age: expect.any(Number) }]);
  ledger.publish(snapshot({ allocations: 1, sessions: 1 }));
  await eventually(async () => expect(sessionsOf(...(await reader.snapshots()))).toHaveLength(1));
});

test('a closed ledger throws an error', async () => {
  const ledger = writer();
  await ledger.close();
  await ledger.close();
  expect(() => ledger.publish(snapshot())).toThrow('The ledger is closed');
  await expect(ledger.snapshots()).rejects.toThrow(LedgerError);
});

test('a second machine of a name is refused until the first has expired', async () => {
  const [first, second] = [
    writer('node-1', 'machine a', SHORT_TTL),
    writer('node-1', 'machine b', SHORT_TTL),
  ];
  const refusals = refusalsOf(second);
  first.publish(snapshot({ allocations: 1 }));
  await reads(snapshot({ allocations: 1 }));
  second.publish(snapshot({ allocations: 2 }));
  await eventually(() => expect(refusals).toHaveLength(2));
  expect(second.state).toMatchObject({ state: 'refused', sentence: refusals[1] });
  second.publish(snapshot({ allocations: 3 }));
  first.publish(snapshot({ allocations: 4 }));
  await reads(snapshot({ allocations: 4 }));
  expect(refusals).toEqual([
    'NODE_TAKEN',
    expect.stringContaining('Another machine already keeps the ledger as node node-1.'),
  ]);
  await first.close();
  await reads(snapshot({ allocations: 3 }));
  await eventually(() => expect(second.state?.state).toBe('connected'));
});

test('two nodes cannot hold the same GPU', async () => {
  const [first, second] = [writer('node-1'), writer('node-2')];
  const refusals = refusalsOf(second);
  const truths = [
    snapshot({ node: 'node-1', gpus: ['GPU-1', 'GPU-2'] }),
    snapshot({ node: 'node-2', gpus: ['GPU-4'] }),
    snapshot({ node: 'node-3', gpus: ['GPU-3'] }),
  ] as const;
  first.publish(truths[0]);
  await reads(truths[0]);
  second.publish(snapshot({ node: 'node-2', gpus: ['GPU-3', 'GPU-2'] }));
  await eventually(() =>
    expect(refusals).toEqual([
      'GPU_TAKEN',
      expect.stringContaining('Node node-1 already keeps GPU GPU-2.'),
    ]),
  );
  expect(second.state).toMatchObject({ state: 'refused', sentence: refusals[1] });
  await reads(truths[0]);
  // The refused node claimed no GPU: its other GPU is free for a third node.
  writer('node-3').publish(truths[2]);
  await reads(truths[0], truths[2]);
  second.publish(truths[1]);
  await reads(...truths);
  await eventually(() => expect(second.state?.state).toBe('connected'));
});

test('one of eight nodes gets a GPU, and another one after it has expired', async () => {
  const names = Array.from({ length: 8 }, (_, index) => `node-${index}`);
  const writers = new Map(names.map((node) => [node, writer(node)]));
  const refused = new Set<string>();
  for (const [node, ledger] of writers) {
    ledger.on('state', (state) => (state === 'refused' ? refused.add(node) : refused.delete(node)));
    ledger.publish(snapshot({ node, gpus: [`GPU of ${node}`, 'GPU-1'] }));
  }
  for (let left = names.length; left > 0; left--) {
    await eventually(() => expect(refused.size).toBe(left - 1));
    const [winner, ...others] = [...writers.keys()].filter((node) => !refused.has(node));
    expect(others).toEqual([]);
    expect((await reader.snapshots()).map((one) => one.node)).toEqual([winner]);
    await writers.get(winner as string)?.close();
    writers.delete(winner as string);
    await server.command('FLUSHALL');
    for (const [node, ledger] of writers)
      ledger.publish(snapshot({ node, gpus: [`GPU of ${node}`, 'GPU-1'] }));
  }
});

test('GPUs with the same UUIDs on all machines are not claimed', async () => {
  const names = ['node-1', 'node-2'];
  for (const node of names)
    openWriter({ node, owner: node, claimGpus: false }).publish(snapshot({ node }));
  await reads(...names.map((node) => snapshot({ node })));
});

test('a newer gpu-proxy of a machine takes over; the older one stops writing', async () => {
  const older = writer();
  const refusals = refusalsOf(older);
  older.publish(snapshot({ allocations: 1 }));
  await reads(snapshot({ allocations: 1 }));
  writer().publish(snapshot({ allocations: 2 }));
  await reads(snapshot({ allocations: 2 }));
  older.publish(snapshot({ allocations: 3 }));
  await eventually(() =>
    expect(refusals).toEqual([
      'NODE_SUPERSEDED',
      expect.stringContaining('A newer gpu-proxy of the same machine keeps the ledger'),
    ]),
  );
  older.publish(snapshot({ allocations: 4 }));
  // It can still read, which does not add it to the ledger again.
  await older.snapshots();
  expect(older.state).toMatchObject({ state: 'refused', sentence: refusals[1] });
  await older.close();
  await reads(snapshot({ allocations: 2 }));
});

test('the snapshot of a node is consistent', async () => {
  const ledger = writer();
  for (let memory = 0; memory < 50; memory++) {
    ledger.publish(snapshot({ memory }));
    const used = sessionsOf(...(await reader.snapshots())).map(({ use }) => use.memory);
    expect(new Set(used).size).toBeLessThanOrEqual(1);
  }
});

test('publish() throws for wrong use', () => {
  expect(() => reader.publish(snapshot())).toThrow('opened for reading');
  expect(() => writer('node-1').publish(snapshot({ node: 'node-2' }))).toThrow(
    'was given what node node-2 holds',
  );
  expect(() => writer('}{')).toThrow('"}{" cannot be the name of a node');
});

test.each<[string, readonly string[], string]>([
  ['no JSON', ['15000', '{'], 'its snapshot is not as expected'],
  ['null', ['15000', 'null'], 'its snapshot is not as expected'],
  ['of another node', ['15000', '{"node":"other"}'], 'its snapshot.gpus is not as expected'],
  ['without a TTL', ['soon', '{}'], 'its ttl is not a number of milliseconds'],
  ['of long ago', ['9007199254740991', '{}'], 'its ttl is not a number of milliseconds'],
])('an entry that is %s hides no other node, and is told once', async (_, entry, reason) => {
  const told: string[] = [];
  reader.on('broken', ({ message }) => told.push(message));
  writer().publish(snapshot());
  const [ttl = '', text = ''] = entry;
  await server.command('HSET', BROKEN, 'ttl', ttl, 'snapshot', text);
  await server.command('ZADD', INDEX, '99999999999999', 'broken');
  await reads(snapshot());
  await reader.snapshots();
  expect(told).toEqual([expect.stringContaining(`does not hold a valid record: ${reason}.`)]);
});

test('an entry of another type of Redis hides no other node', async () => {
  writer().publish(snapshot());
  await server.command('SET', BROKEN, 'x');
  await server.command('ZADD', INDEX, '99999999999999', 'broken');
  await reads(snapshot());
});
