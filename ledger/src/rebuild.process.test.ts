import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import type { NodeSnapshot } from './records.js';
import { RedisLedger } from './redis-ledger.js';
import { RedisServer } from './testing/redis-server.js';
import { sessionsOf, snapshot } from './testing/snapshots.js';

/**
 * The ledger is an index that is rebuilt from the nodes' directories, whatever happens to it, to a
 * node or to Redis.
 */
const WRITER = path.join(import.meta.dirname, 'testing', 'writer-process.js');
/** Milliseconds. Long enough for renewals on a loaded machine. */
const TTL = 3000;
const ENTRY = 'nvidia-virtual:{ledger}:node:node-1';

let directory: string;
let server: RedisServer;
let reader: RedisLedger;
let processes: ChildProcess[];
let ledgers: RedisLedger[];

beforeEach(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'nvidia-virtual-ledger-'));
  server = await RedisServer.start();
  processes = [];
  reader = new RedisLedger({ redis: server.place });
  ledgers = [reader];
});
afterEach(async () => {
  for (const child of processes) child.kill('SIGKILL');
  await Promise.all(ledgers.map((ledger) => ledger.close()));
  await server.remove();
  rmSync(directory, { recursive: true });
});

/** Writes a node's directories. */
function lay(truth: NodeSnapshot): NodeSnapshot {
  const root = path.join(directory, truth.node);
  mkdirSync(path.join(root, 'allocations'), { recursive: true });
  writeFileSync(path.join(root, 'gpus.json'), JSON.stringify(truth.gpus));
  for (const { sessions, ...allocation } of truth.allocations) {
    const place = path.join(root, 'allocations', allocation.specification.id);
    mkdirSync(path.join(place, 'sessions'), { recursive: true });
    writeFileSync(path.join(place, 'allocation.json'), JSON.stringify(allocation));
    for (const session of sessions)
      writeFileSync(
        path.join(place, 'sessions', String(session.record.number)),
        JSON.stringify(session),
      );
  }
  return truth;
}

function startNode(node: string): ChildProcess {
  const args = [WRITER, server.socket, node, path.join(directory, node), String(TTL)];
  const child = spawn(process.execPath, args, { stdio: 'inherit' });
  processes.push(child);
  return child;
}

function open(): RedisLedger {
  const ledger = new RedisLedger({
    redis: server.place,
    writer: { node: 'node-1', owner: 'a machine' },
    ttl: TTL,
  });
  ledgers.push(ledger);
  return ledger;
}

async function reads(...truths: NodeSnapshot[]): Promise<void> {
  await eventually(async () =>
    expect(await reader.snapshots()).toEqual(
      truths.map((truth) => ({ ...truth, age: expect.any(Number) })),
    ),
  );
}

test('the ledger is rebuilt at start, after FLUSHALL, and after Redis lost its data', async () => {
  const truths = [
    lay(snapshot({ node: 'node-1', gpus: ['GPU-1'] })),
    lay(snapshot({ node: 'node-2', gpus: ['GPU-2'], allocations: 5 })),
  ] as const;
  for (const { node } of truths) startNode(node);
  await reads(...truths);
  await server.command('FLUSHALL');
  await reads(...truths);
  await server.kill();
  await server.start();
  await reads(...truths);
});

test('a dead node is removed completely and returns completely, with its changes', async () => {
  const [lost, kept] = [
    lay(snapshot({ node: 'node-1', gpus: ['GPU-1'] })),
    lay(snapshot({ node: 'node-2', gpus: ['GPU-2'] })),
  ];
  const child = startNode(lost.node);
  startNode(kept.node);
  await reads(lost, kept);
  child.kill('SIGKILL');
  await eventually(async () => {
    const nodes = await reader.snapshots();
    // A node is in the ledger completely or not at all.
    for (const node of nodes) expect(sessionsOf(node)).toHaveLength(6);
    expect(nodes.map((one) => one.node)).toEqual([kept.node]);
  });
  const changed = lay(snapshot({ node: 'node-1', gpus: ['GPU-1'], memory: 5 }));
  startNode(lost.node);
  await reads(changed, kept);
});

test('a suspended node is removed, and returns when it continues', async () => {
  const truth = lay(snapshot());
  const child = startNode(truth.node);
  await reads(truth);
  child.kill('SIGSTOP');
  await reads();
  child.kill('SIGCONT');
  await reads(truth);
});

test('a proxy that is killed and restarts leaves no gap', async () => {
  const truth = lay(snapshot());
  const child = startNode(truth.node);
  await reads(truth);
  const first = await server.command('HGET', ENTRY, 'writer');
  child.kill('SIGKILL');
  const successor = startNode(truth.node);
  for (let times = 0; times < 100; times++) expect(await reader.snapshots()).toHaveLength(1);
  await eventually(async () =>
    expect(await server.command('HGET', ENTRY, 'writer')).not.toBe(first),
  );
  await reads(truth);
  expect(successor.exitCode).toBeNull();
});

test('the last publication before close() is written, and stays until its TTL ends', async () => {
  const ledger = open();
  ledger.publish(snapshot());
  const last = snapshot({ allocations: 5, sessions: 1 });
  ledger.publish(last);
  await ledger.close();
  expect(await reader.snapshots()).toEqual([{ ...last, age: expect.any(Number) }]);
  await reads();
});

test('after a day without Redis, the last of 86,400 publications is written', async () => {
  const ledger = open();
  ledger.publish(snapshot());
  await reads(snapshot());
  await server.kill();
  const seconds = 24 * 3600;
  for (let second = 0; second < seconds; second++)
    ledger.publish(snapshot({ allocations: 1, sessions: 1, memory: second }));
  await eventually(() => expect(ledger.state?.state).toBe('away'));
  await server.start();
  const last = snapshot({ allocations: 1, sessions: 1, memory: seconds - 1 });
  await reads(last);
});

test('an unchanged node sends no snapshot', async () => {
  const ledger = open();
  const large = snapshot({ allocations: 100, sessions: 10 });
  ledger.publish(large);
  await reads(large);
  const size = JSON.stringify(large).length;
  // A slow machine may repeat a write after a late answer.
  await eventually(async () => {
    const [bytes, calls] = [await statistic('net_input_bytes'), await callsOfScript()];
    for (let times = 0; times < 3; times++) {
      ledger.publish(structuredClone(large));
      await eventually(async () => expect(await callsOfScript()).toBeGreaterThan(calls + times));
    }
    expect((await statistic('net_input_bytes')) - bytes).toBeLessThan(size / 2);
  });
});

test('after random publications and failures, the last publication is in the ledger', async () => {
  const ledger = open();
  const troubles = [
    () => server.command('FLUSHALL'),
    () => server.command('DEL', ENTRY),
    () => server.command('DEL', 'nvidia-virtual:{ledger}:nodes'),
    () => server.command('HDEL', ENTRY, 'snapshot'),
    () => server.command('SCRIPT', 'FLUSH'),
    () => server.command('CLIENT', 'KILL', 'TYPE', 'normal').catch(() => undefined),
    async () => {
      server.pause();
      ledger.publish(anySnapshot());
      server.resume();
    },
    () => server.kill().then(() => server.start()),
  ];
  for (let round = 0; round < 30; round++) {
    for (let times = random(4); times >= 0; times--) ledger.publish(anySnapshot());
    await troubles[round % troubles.length]?.();
    const last = anySnapshot();
    ledger.publish(last);
    if (random(2) === 0) await reads(last);
  }
  const last = anySnapshot();
  ledger.publish(last);
  await reads(last);
});

function anySnapshot(): NodeSnapshot {
  const gpus = ['GPU-1', 'GPU-2', 'GPU-3'].slice(random(3));
  return snapshot({ gpus, allocations: random(6), sessions: random(6), memory: random(1000) });
}

/** A random integer from 0 to `most` - 1. */
function random(most: number): number {
  return Math.floor(Math.random() * most);
}

async function statistic(name: string): Promise<number> {
  const figures = String(await server.command('INFO', 'stats'));
  return Number(new RegExp(`total_${name}:(\\d+)`).exec(figures)?.[1]);
}

async function callsOfScript(): Promise<number> {
  const figures = String(await server.command('INFO', 'commandstats'));
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(figures)?.[1] ?? 0);
}
