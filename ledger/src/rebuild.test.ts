import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Ledger } from './ledger.js';
import type { NodeSnapshot } from './records.js';
import { RedisLedger } from './redis-ledger.js';
import { eventually } from './testing/eventually.js';
import { RedisServer } from './testing/redis-server.js';
import { snapshot } from './testing/snapshots.js';

/** The ledger is an index: whatever happens to it, to a node or to Redis, it becomes what the nodes' directories say. */
const WRITER = path.join(import.meta.dirname, 'testing', 'writer-process.js');
/** Long enough for a loaded machine to renew in. */
const LEASE = 3000;

let directory: string;
let server: RedisServer;
let reader: Ledger;
let processes: ChildProcess[];
let ledgers: Ledger[];

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
  for (const { specification, time, sessions } of truth.allocations) {
    const place = path.join(root, 'allocations', specification.id);
    mkdirSync(path.join(place, 'sessions'), { recursive: true });
    writeFileSync(path.join(place, 'allocation.json'), JSON.stringify({ specification, time }));
    for (const session of sessions) writeFileSync(path.join(place, 'sessions', String(session.record.number)), JSON.stringify(session));
  }
  return truth;
}

function startNode(node: string): ChildProcess {
  const args = [WRITER, server.place.socket as string, node, path.join(directory, node), String(LEASE)];
  const child = spawn(process.execPath, args, { stdio: 'inherit' });
  processes.push(child);
  return child;
}

function open(): Ledger {
  const ledger = new RedisLedger({ redis: server.place, writer: { node: 'node-1', owner: 'a machine' }, lease: LEASE });
  ledgers.push(ledger);
  return ledger;
}

async function reads(...truths: NodeSnapshot[]): Promise<void> {
  await eventually(async () => {
    expect((await reader.nodes()).map((one) => one.node)).toEqual(truths.map((one) => one.node));
    for (const truth of truths) expect(await reader.node(truth.node)).toEqual({ ...truth, age: expect.any(Number) });
  });
}

test('from directories: at the start, after FLUSHALL, and with a Redis that lost everything', async () => {
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

test('a node that is lost leaves the ledger whole, and comes back whole, with what changed meanwhile', async () => {
  const [lost, kept] = [lay(snapshot({ node: 'node-1', gpus: ['GPU-1'] })), lay(snapshot({ node: 'node-2', gpus: ['GPU-2'] }))];
  const child = startNode(lost.node);
  startNode(kept.node);
  await reads(lost, kept);
  child.kill('SIGKILL');
  await eventually(async () => {
    const [nodes, sessions] = [await reader.nodes(), await reader.sessions({ node: lost.node })];
    // Never a part of it: as long as it is there, all of it is.
    if (nodes.length === 2) expect([6, 0]).toContain(sessions.length);
    expect(nodes.map((one) => one.node)).toEqual([kept.node]);
  });
  expect(await reader.node(lost.node)).toBeUndefined();
  expect(await reader.sessions()).toHaveLength(6);
  const changed = lay(snapshot({ node: 'node-1', gpus: ['GPU-1'], memory: 5 }));
  startNode(lost.node);
  await reads(changed, kept);
});

test('a node that stands still is lost, and comes back when it goes on', async () => {
  const truth = lay(snapshot());
  const child = startNode(truth.node);
  await reads(truth);
  child.kill('SIGSTOP');
  await reads();
  child.kill('SIGCONT');
  await reads(truth);
});

test('a proxy that was killed and starts again is not missed for a moment', async () => {
  const truth = lay(snapshot());
  const child = startNode(truth.node);
  await reads(truth);
  const first = await server.command('HGET', 'nvidia-virtual:{node-1}:lease', 'instance');
  child.kill('SIGKILL');
  const successor = startNode(truth.node);
  for (let times = 0; times < 100; times++) expect(await reader.sessions()).toHaveLength(6);
  await eventually(async () => expect(await server.command('HGET', 'nvidia-virtual:{node-1}:lease', 'instance')).not.toBe(first));
  await reads(truth);
  expect(successor.exitCode).toBeNull();
});

test('the last publication before close() is written, and stays until its lease ends', async () => {
  const ledger = open();
  ledger.publish(snapshot());
  const last = snapshot({ allocations: 5, sessions: 1 });
  ledger.publish(last);
  await ledger.close();
  expect(await reader.node('node-1')).toEqual({ ...last, age: expect.any(Number) });
  await reads();
});

test('a day without Redis: as many publications as a day has seconds, and the last one counts', async () => {
  const ledger = open();
  ledger.publish(snapshot());
  await reads(snapshot());
  await server.kill();
  const seconds = 24 * 3600;
  for (let second = 0; second < seconds; second++) ledger.publish(snapshot({ allocations: 1, sessions: 1, memory: second }));
  await eventually(() => expect(ledger.state?.state).toBe('away'));
  await server.start();
  const last = snapshot({ allocations: 1, sessions: 1, memory: seconds - 1 });
  await reads(last);
});

test('changes of one session send that session, not everything', async () => {
  const ledger = open();
  const large = snapshot({ allocations: 1000, sessions: 10 });
  ledger.publish(large);
  await eventually(async () => expect(await reader.node('node-1')).toBeDefined());
  const whole = await bytesReceived();
  const [first, ...others] = large.allocations;
  const [session, ...rest] = first?.sessions ?? [];
  if (!first || !session) throw new Error('The snapshot is empty');
  let memory = 12_345;
  // On a slow machine the whole may be on its way a second time, after an answer that came too late.
  await eventually(async () => {
    const before = await bytesReceived();
    for (let times = 0; times < 3; times++) {
      const changed = { ...session, use: { ...session.use, memory: ++memory } };
      ledger.publish({ ...large, allocations: [{ ...first, sessions: [changed, ...rest] }, ...others] });
      await eventually(async () => expect((await reader.sessions({ node: 'node-1' }))[0]?.use.memory).toBe(memory));
    }
    expect((await bytesReceived()) - before).toBeLessThan(whole / 50);
  });
});

test('any publications and any troubles: in the end it holds what was published last', async () => {
  const ledger = open();
  const troubles = [
    () => server.command('FLUSHALL'),
    () => server.command('DEL', 'nvidia-virtual:{node-1}:sessions'),
    () => server.command('HDEL', 'nvidia-virtual:{node-1}:use', '0000000000000001/1'),
    () => server.command('SCRIPT', 'FLUSH'),
    () => server.command('CLIENT', 'KILL', 'TYPE', 'normal').catch(() => undefined),
    async () => {
      server.pause();
      setTimeout(() => server.resume(), 50);
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

/** A whole number from 0 to one less than `most`. */
function random(most: number): number {
  return Math.floor(Math.random() * most);
}

async function bytesReceived(): Promise<number> {
  const figures = String(await server.command('INFO', 'stats'));
  return Number(/total_net_input_bytes:(\d+)/.exec(figures)?.[1]);
}
