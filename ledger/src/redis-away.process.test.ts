import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { LedgerError, type LedgerErrorCode } from './errors.js';
import type { NodeSnapshot } from './records.js';
import { RedisLedger } from './redis-ledger.js';
import type { RedisOptions } from './redis-options.js';
import { RedisServer, type RedisServerOptions } from './testing/redis-server.js';
import { sessionsOf, snapshot } from './testing/snapshots.js';
import { Witness } from './testing/witness.js';

/** Failures of a real redis-server, and the ledger's recovery from them. */
let directory: string;
let servers: RedisServer[];
let ledgers: RedisLedger[];

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'nvidia-virtual-ledger-'));
  servers = [];
  ledgers = [];
});
afterEach(async () => {
  for (const server of servers) server.resume();
  await Promise.all(ledgers.map((ledger) => ledger.close()));
  await Promise.all(servers.map((server) => server.remove()));
  rmSync(directory, { recursive: true });
});

async function started(options: RedisServerOptions = {}): Promise<RedisServer> {
  const server = await RedisServer.start(options);
  servers.push(server);
  return server;
}

function open(redis: RedisOptions, writes = true): RedisLedger {
  const writer = { node: 'node-1', owner: 'a machine' };
  const ledger = new RedisLedger({
    redis,
    ...(writes ? { writer } : {}),
  });
  ledgers.push(ledger);
  return ledger;
}

function password(word: string): string {
  const file = path.join(directory, 'password');
  writeFileSync(file, `${word}\n`);
  return file;
}

/** Waits until the ledger holds exactly this. */
async function holds(
  server: RedisServer,
  truth: NodeSnapshot,
  redis: Partial<RedisOptions> = {},
): Promise<void> {
  const reader = open({ ...server.place, ...redis }, false);
  await eventually(async () =>
    expect(await reader.snapshots()).toEqual([{ ...truth, age: expect.any(Number) }]),
  );
}

/**
 * Writes one snapshot, breaks Redis, and publishes another snapshot while Redis is broken.
 */
async function befalls(
  server: RedisServer,
  {
    redis = {},
    code,
    begin,
    end,
  }: {
    redis?: Partial<RedisOptions>;
    code: LedgerErrorCode;
    begin: () => unknown;
    end: () => unknown;
  },
): Promise<string> {
  const ledger = open({ ...server.place, ...redis });
  const witness = new Witness(ledger);
  ledger.publish(snapshot());
  await witness.sees('connected');
  await begin();
  const later = snapshot({ allocations: 5, sessions: 1, memory: 7 });
  ledger.publish(snapshot({ allocations: 1 }));
  ledger.publish(later);
  await witness.sees(code);
  await end();
  await witness.sees('connected');
  await holds(server, later, redis);
  return witness.sentenceOf(code) as string;
}

test('kill -9, and a start without data', async () => {
  const server = await started({ tcp: true });
  const code = 'REDIS_UNREACHABLE';
  const sentence = await befalls(server, {
    code,
    begin: () => server.kill(),
    end: () => server.start(),
  });
  expect(sentence).toBe(
    `Redis at ${server.address} cannot be reached: connection refused. Check that it runs, ` +
      `and that the address is right.`,
  );
});

test('Redis starts after the ledger', async () => {
  const server = await started();
  await server.stop();
  const ledger = open(server.place);
  const witness = new Witness(ledger);
  ledger.publish(snapshot());
  await witness.sees('REDIS_UNREACHABLE');
  await expect(ledger.snapshots()).rejects.toThrow(`Redis at ${server.address} cannot be reached`);
  await server.start();
  await witness.sees('connected');
  await holds(server, snapshot());
});

test('FLUSHALL without a later publication', async () => {
  const server = await started();
  open(server.place).publish(snapshot());
  await holds(server, snapshot());
  await server.command('FLUSHALL');
  await holds(server, snapshot());
});

test('single deleted keys', async () => {
  const server = await started();
  open(server.place).publish(snapshot());
  await holds(server, snapshot());
  for (const key of (await server.command('KEYS', '*')) as string[]) {
    await server.command('DEL', key);
    await holds(server, snapshot());
  }
});

test('Redis restarts with old data', async () => {
  const server = await started();
  const ledger = open(server.place);
  const witness = new Witness(ledger);
  ledger.publish(snapshot({ allocations: 4 }));
  await holds(server, snapshot({ allocations: 4 }));
  await server.command('SAVE');
  ledger.publish(snapshot({ allocations: 3 }));
  await holds(server, snapshot({ allocations: 3 }));
  await server.kill();
  await witness.sees('REDIS_UNREACHABLE');
  await server.start();
  await holds(server, snapshot({ allocations: 3 }));
});

test('SIGSTOP', async () => {
  const server = await started({ tcp: true });
  const sentence = await befalls(server, {
    code: 'REDIS_SILENT',
    begin: () => server.pause(),
    end: () => server.resume(),
  });
  expect(sentence).toBe(
    `Redis at ${server.address} gave no answer for 3000 ms. Check whether it is paused, ` +
      `stopped or overloaded.`,
  );
});

test('CLIENT PAUSE', async () => {
  const server = await started();
  await befalls(server, {
    code: 'REDIS_SILENT',
    begin: () => server.command('CLIENT', 'PAUSE', 60_000, 'WRITE'),
    end: () => server.command('CLIENT', 'UNPAUSE'),
  });
});

test('an endless script of another client', async () => {
  const server = await started({ args: ['--lua-time-limit', '50'] });
  await befalls(server, {
    code: 'REDIS_BUSY',
    begin: () => {
      void server.command('EVAL', 'while true do end', 0).catch(() => undefined);
    },
    end: () => server.command('SCRIPT', 'KILL'),
  });
});

test('Redis is out of memory', async () => {
  const server = await started();
  const sentence = await befalls(server, {
    code: 'REDIS_MEMORY',
    begin: async () => {
      await server.command('SET', 'ballast', 'x'.repeat(2_000_000));
      await server.command('CONFIG', 'SET', 'maxmemory', 1_000_000);
    },
    end: () =>
      server.command('DEL', 'ballast').then(() => server.command('CONFIG', 'SET', 'maxmemory', 0)),
  });
  expect(sentence).toContain(
    "has no memory left: OOM command not allowed when used memory > 'maxmemory'.",
  );
});

test('Redis cannot save to its disk', async () => {
  // A removed directory acts like a lost disk.
  const disk = mkdtempSync(path.join(directory, 'disk-'));
  const server = await started({ args: ['--dir', disk] });
  const sentence = await befalls(server, {
    code: 'REDIS_DISK',
    begin: async () => {
      await server.command('CONFIG', 'SET', 'save', '3600 1');
      rmSync(disk, { recursive: true });
      await server.command('BGSAVE');
      await eventually(async () =>
        expect(await server.command('INFO', 'persistence')).toContain('rdb_last_bgsave_status:err'),
      );
    },
    end: () => server.command('CONFIG', 'SET', 'save', ''),
  });
  expect(sentence).toContain('refuses writes because it cannot save to its disk: MISCONF');
});

test('Redis becomes a replica', async () => {
  const server = await started();
  await befalls(server, {
    code: 'REDIS_READ_ONLY',
    begin: () => server.command('REPLICAOF', '127.0.0.1', '1'),
    end: () => server.command('REPLICAOF', 'NO', 'ONE'),
  });
});

test('Redis is loading its data', async () => {
  const server = await started({ args: ['--rdbcompression', 'no'] });
  for (let index = 0; index < 20; index++)
    await server.command('SET', `key-${index}`, 'x'.repeat(1000));
  await server.command('SAVE');
  await befalls(server, {
    code: 'REDIS_LOADING',
    begin: async () => {
      await server.kill();
      // Loading takes 0.1 s per key, and Redis serves clients after each kilobyte.
      await server.start({
        args: ['--key-load-delay', '100000', '--loading-process-events-interval-bytes', '1024'],
        loading: true,
      });
    },
    end: () => undefined,
  });
});

test('Redis is a cluster node without the slot of the ledger, or with it', async () => {
  const server = await started({
    args: ['--cluster-enabled', 'yes', '--cluster-require-full-coverage', 'no'],
  });
  const slot = Number(await server.command('CLUSTER', 'KEYSLOT', 'nvidia-virtual:{ledger}:nodes'));
  await server.command('CLUSTER', 'ADDSLOTS', slot - 1);
  const ledger = open(server.place);
  const witness = new Witness(ledger);
  ledger.publish(snapshot());
  await witness.sees('REDIS_CLUSTER');
  await server.command('CLUSTER', 'ADDSLOTS', slot);
  await witness.sees('connected');
  await holds(server, snapshot());
});

test('a wrong password that is corrected in its file', async () => {
  const server = await started({ args: ['--requirepass', 'right'], password: 'right' });
  const passwordFile = password('wrong');
  const ledger = open({ ...server.place, passwordFile });
  const witness = new Witness(ledger);
  ledger.publish(snapshot());
  await witness.sees('REDIS_PASSWORD');
  expect(witness.said[0]?.sentence).toContain(
    `Redis at ${server.address} does not let user default in: WRONGPASS`,
  );
  renameSync(passwordFile, `${passwordFile}.old`);
  await witness.sees('REDIS_FILE');
  writeFileSync(passwordFile, 'right\n');
  await witness.sees('connected');
  await holds(server, snapshot(), { passwordFile });
});

test('a missing password, and an unexpected one', async () => {
  const [locked, unlocked] = [
    await started({ args: ['--requirepass', 'right'], password: 'right' }),
    await started(),
  ];
  await expect(open(locked.place, false).snapshots()).rejects.toThrow(
    'does not let user default in: NOAUTH Authentication required.',
  );
  await expect(
    open({ ...unlocked.place, passwordFile: password('x') }, false).snapshots(),
  ).rejects.toThrow('without any password configured');
});

test("README.md's permissions suffice; without one, the error names it", async () => {
  const page = readFileSync(path.resolve(import.meta.dirname, '../README.md'), 'utf8');
  const [line, reader] = [/^ACL SETUSER (.+)$/m, /A reader needs only [^`]+`([^`]+)`/].map(
    (pattern) => pattern.exec(page)?.[1],
  ) as [string, string];
  const server = await started();
  await server.command('ACL', 'SETUSER', ...line.replace('PASSWORD', 'secret').split(' '));
  const redis = { username: 'nvidia-virtual', passwordFile: password('secret') };
  const sentence = await befalls(server, {
    redis,
    code: 'REDIS_PERMISSION',
    begin: () => server.command('ACL', 'SETUSER', 'nvidia-virtual', '-hset'),
    end: () => server.command('ACL', 'SETUSER', 'nvidia-virtual', '+hset'),
  });
  expect(sentence).toContain('does not give user nvidia-virtual the rights that the ledger needs');
  await server.command(
    'ACL',
    'SETUSER',
    'reader',
    'on',
    '>secret',
    '~nvidia-virtual:*',
    '+ping',
    '+auth',
    '+select',
    ...reader.split(/\s+/),
  );
  const readers = { username: 'reader', passwordFile: password('secret') };
  const found = await open({ ...server.place, ...readers }, false).snapshots();
  expect(sessionsOf(...found)).toHaveLength(5);
});

test('another database, and a missing one', async () => {
  const server = await started({ tcp: true });
  const inDatabase = (number: number) => ({ url: `${server.url}/${number}` });
  open(inDatabase(3)).publish(snapshot());
  await holds(server, snapshot(), inDatabase(3));
  expect(await open(server.place, false).snapshots()).toEqual([]);
  await expect(open(inDatabase(99), false).snapshots()).rejects.toThrow(
    'has no database 99: ERR DB index is out of range',
  );
});

test('reading fails while Redis is unreachable', async () => {
  const server = await started();
  open(server.place).publish(snapshot());
  const reader = open(server.place, false);
  await eventually(async () => expect(await reader.snapshots()).toHaveLength(1));
  await server.kill();
  await expect(reader.snapshots()).rejects.toThrow(LedgerError);
  await expect(reader.snapshots()).rejects.toThrow('cannot be reached');
});

test('a reader emits its state too, and each error once', async () => {
  const server = await started();
  const reader = open(server.place, false);
  const witness = new Witness(reader);
  await reader.snapshots();
  await witness.sees('connected');
  await server.kill();
  for (let times = 0; times < 4; times++)
    await expect(reader.snapshots()).rejects.toThrow(LedgerError);
  await server.start();
  await reader.snapshots();
  await witness.sees('connected');
  expect(witness.said.map(({ code, state }) => code ?? state)).toEqual([
    'connected',
    'REDIS_UNREACHABLE',
    'connected',
  ]);
});

test('close() does not wait for an unreachable Redis', async () => {
  const server = await started({ tcp: true });
  const ledger = open({ ...server.place, connectTimeout: 60_000, answerTimeout: 60_000 });
  ledger.publish(snapshot());
  await holds(server, snapshot());
  server.pause();
  ledger.publish(snapshot({ allocations: 1 }));
  await ledger.close();
});
