import { LedgerError } from './errors.js';
import type { Ledger, WriterIdentity } from './ledger.js';
import { MemoryLedger, MemoryStore } from './memory-ledger.js';
import { RedisLedger } from './redis-ledger.js';
import { eventually } from './testing/eventually.js';
import { RedisServer } from './testing/redis-server.js';
import { snapshot } from './testing/snapshots.js';

/** What holds of both stores. */
interface Store {
  open(writer?: WriterIdentity): Ledger;
  clear(): Promise<void>;
}

let server: RedisServer;
let memory = new MemoryStore();
let open: Ledger[] = [];

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.remove());

const STORES: readonly (readonly [string, Store])[] = [
  [
    'MemoryLedger',
    {
      open: (writer) => new MemoryLedger({ store: memory, ...(writer ? { writer } : {}) }),
      clear: async () => {
        memory = new MemoryStore();
      },
    },
  ],
  [
    'RedisLedger',
    {
      open: (writer) => new RedisLedger({ redis: server.place, ...(writer ? { writer } : {}) }),
      clear: async () => {
        await server.command('FLUSHALL');
      },
    },
  ],
];

describe.each(STORES)('%s', (_, store) => {
  let reader: Ledger;

  function keep(ledger: Ledger): Ledger {
    open.push(ledger);
    return ledger;
  }

  function writer(node = 'node-1', owner = `owner of ${node}`): Ledger {
    return keep(store.open({ node, owner }));
  }

  /** Code and sentence of each refusal that it hears. */
  function refusalsOf(ledger: Ledger): string[] {
    const refusals: string[] = [];
    ledger.on('state', (state, sentence, error) => state === 'refused' && refusals.push(error?.code as string, sentence));
    return refusals;
  }

  /** Records that are not there in JSON, since they are undefined, are equal to it; whatever is told has an age. */
  function told<T extends object>(record: T, node = 'node-1'): T {
    return { ...record, node, age: expect.any(Number) };
  }

  beforeEach(async () => {
    await store.clear();
    reader = keep(store.open());
  });
  afterEach(async () => {
    await Promise.all(open.map((ledger) => ledger.close({ withdraw: true })));
    open = [];
  });

  test('what is published is read: whole, by node, by allocation, by session', async () => {
    const truth = snapshot();
    writer().publish(truth);
    await eventually(async () => expect(await reader.node('node-1')).toEqual(told(truth)));
    expect(await reader.snapshots()).toEqual([told(truth)]);
    expect(await reader.nodes()).toEqual([told({ gpus: truth.gpus })]);
    const allocations = await reader.allocations();
    expect(allocations).toEqual(truth.allocations.map(({ specification, time }) => told({ specification, time })));
    expect(await reader.sessions()).toEqual(truth.allocations.flatMap((one) => one.sessions.map((session) => told(session))));
    const [first] = truth.allocations;
    expect(await reader.sessions({ allocation: first?.specification.id as string })).toEqual(
      first?.sessions.map((session) => told(session)),
    );
    expect((await reader.nodes())[0]?.age).toBeLessThan(15_000);
  });

  test('nothing is read of a node that never was', async () => {
    expect(await reader.nodes()).toEqual([]);
    expect(await reader.node('node-1')).toBeUndefined();
    expect(await reader.allocations({ node: 'node-1' })).toEqual([]);
    expect(await reader.sessions()).toEqual([]);
  });

  test('a later publication replaces an earlier one: what is gone is gone', async () => {
    const ledger = writer();
    ledger.publish(snapshot({ allocations: 3, sessions: 4 }));
    await eventually(async () => expect(await reader.sessions()).toHaveLength(12));
    for (const memory of [1, 2, 3, 4]) ledger.publish(snapshot({ allocations: 1, sessions: 2, memory }));
    const last = snapshot({ allocations: 1, sessions: 2, memory: 4 });
    await eventually(async () => expect(await reader.node('node-1')).toEqual(told(last)));
    expect(await reader.sessions()).toHaveLength(2);
  });

  test('a node may hold nothing', async () => {
    const empty = snapshot({ gpus: [], allocations: 0 });
    writer().publish(empty);
    await eventually(async () => expect(await reader.node('node-1')).toEqual(told(empty)));
  });

  test('several nodes stand side by side', async () => {
    writer('node-1').publish(snapshot({ node: 'node-1', gpus: ['GPU-1'] }));
    writer('node-2').publish(snapshot({ node: 'node-2', gpus: ['GPU-2'], allocations: 1 }));
    await eventually(async () => expect(await reader.nodes()).toHaveLength(2));
    expect((await reader.allocations({ node: 'node-2' })).map((one) => one.node)).toEqual(['node-2']);
    expect(await reader.allocations()).toHaveLength(3);
  });

  test('1,000 allocations with 10,000 sessions fit', async () => {
    const large = snapshot({ allocations: 1000, sessions: 10 });
    const ledger = writer();
    ledger.publish(large);
    await eventually(async () => expect(await reader.nodes()).toHaveLength(1));
    expect(await reader.node('node-1')).toEqual(told(large));
    ledger.publish(snapshot({ allocations: 1, sessions: 1 }));
    await eventually(async () => expect(await reader.sessions()).toHaveLength(1));
  });

  test('withdraw takes a node out at once', async () => {
    const ledger = writer();
    ledger.publish(snapshot());
    await eventually(async () => expect(await reader.nodes()).toHaveLength(1));
    await ledger.close({ withdraw: true });
    expect(await reader.nodes()).toEqual([]);
    expect(await reader.node('node-1')).toBeUndefined();
  });

  test('a closed ledger says so', async () => {
    const ledger = writer();
    await ledger.close();
    await ledger.close();
    expect(() => ledger.publish(snapshot())).toThrow('The ledger was closed');
    await expect(ledger.nodes()).rejects.toThrow(LedgerError);
  });

  test('a second machine of the same name is kept out, told so once, and let in when the first withdraws', async () => {
    const [first, second] = [writer('node-1', 'machine a'), writer('node-1', 'machine b')];
    const refusals = refusalsOf(second);
    first.publish(snapshot({ allocations: 1 }));
    await eventually(async () => expect(await reader.allocations()).toHaveLength(1));
    second.publish(snapshot({ allocations: 2 }));
    await eventually(() => expect(refusals).toHaveLength(2));
    expect(second.state).toMatchObject({ state: 'refused', sentence: refusals[1] });
    second.publish(snapshot({ allocations: 3 }));
    first.publish(snapshot({ allocations: 4 }));
    await eventually(async () => expect(await reader.allocations()).toHaveLength(4));
    expect(refusals).toEqual(['NODE_TAKEN', expect.stringContaining('Another machine already keeps the ledger as node node-1.')]);
    await first.close({ withdraw: true });
    second.publish(snapshot({ allocations: 5 }));
    await eventually(async () => expect(await reader.allocations()).toHaveLength(5));
    await eventually(() => expect(second.state?.state).toBe('connected'));
  });

  test('one GPU cannot be kept by two nodes', async () => {
    const [first, second] = [writer('node-1'), writer('node-2')];
    const refusals = refusalsOf(second);
    first.publish(snapshot({ node: 'node-1', gpus: ['GPU-1', 'GPU-2'] }));
    await eventually(async () => expect(await reader.nodes()).toHaveLength(1));
    second.publish(snapshot({ node: 'node-2', gpus: ['GPU-3', 'GPU-2'] }));
    await eventually(() => expect(refusals).toEqual(['GPU_TAKEN', expect.stringContaining('Node node-1 already keeps GPU GPU-2.')]));
    expect(second.state).toMatchObject({ state: 'refused', sentence: refusals[1] });
    expect((await reader.nodes()).map((one) => one.node)).toEqual(['node-1']);
    // It took none of them: the one that it could have had is free for a third.
    writer('node-3').publish(snapshot({ node: 'node-3', gpus: ['GPU-3'] }));
    await eventually(async () => expect(await reader.nodes()).toHaveLength(2));
    second.publish(snapshot({ node: 'node-2', gpus: ['GPU-4'] }));
    await eventually(async () => expect(await reader.nodes()).toHaveLength(3));
    await eventually(() => expect(second.state?.state).toBe('connected'));
  });

  test('of eight nodes that want the same GPU at once exactly one gets it, and the next when that one withdraws', async () => {
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
      expect((await reader.nodes()).map((one) => one.node)).toEqual([winner]);
      await writers.get(winner as string)?.close({ withdraw: true });
      writers.delete(winner as string);
      for (const [node, ledger] of writers) ledger.publish(snapshot({ node, gpus: [`GPU of ${node}`, 'GPU-1'] }));
    }
  });

  test('GPUs whose UUIDs are the same everywhere are not claimed', async () => {
    for (const node of ['node-1', 'node-2']) keep(store.open({ node, owner: node, claimGpus: false })).publish(snapshot({ node }));
    await eventually(async () => expect(await reader.nodes()).toHaveLength(2));
  });

  test('a newer proxy of the same machine takes over, and the older one cannot write any more', async () => {
    const older = writer();
    const refusals = refusalsOf(older);
    older.publish(snapshot({ allocations: 1 }));
    await eventually(async () => expect(await reader.allocations()).toHaveLength(1));
    writer().publish(snapshot({ allocations: 2 }));
    await eventually(async () => expect(await reader.allocations()).toHaveLength(2));
    older.publish(snapshot({ allocations: 3 }));
    await eventually(() => expect(refusals).toEqual(['NODE_SUPERSEDED', expect.stringContaining('A newer gpu-proxy keeps the ledger')]));
    older.publish(snapshot({ allocations: 4 }));
    // It may still read, and is no more in the ledger for that.
    await older.nodes();
    expect(older.state).toMatchObject({ state: 'refused', sentence: refusals[1] });
    await older.close({ withdraw: true });
    expect(await reader.allocations()).toHaveLength(2);
  });

  test('publish() refuses what is wrong in the program', () => {
    expect(() => reader.publish(snapshot())).toThrow('opened for reading');
    expect(() => writer('node-1').publish(snapshot({ node: 'node-2' }))).toThrow('was given what node node-2 holds');
    expect(() => writer('}{')).toThrow('"}{" cannot be the name of a node');
  });
});
