import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { ConnectionQueue, hasGone, type QueuedConnection } from './connection-queue.js';
import { StartRateLimit } from './start-rate-limit.js';

/** No process of this machine has this pid. */
const GONE = 2 ** 22 + 1;

let now = 0;
let starting = 0;
let mayStart = true;
let dropped = 0;
let started: QueuedConnection[] = [];
let silent: Socket | undefined;
let queue: ConnectionQueue;

beforeEach(() => {
  [now, starting, mayStart, dropped, started] = [0, 0, true, 0, []];
  queue = new ConnectionQueue({
    starting: () => starting,
    gone: ({ connection, peer }) => hasGone(peer) || connection === silent,
    mayStart: () => mayStart,
    start: (next) => started.push(next),
    dropped: () => dropped++,
    limit: new StartRateLimit(() => now),
  });
});

afterEach(() => {
  jest.useRealTimers();
});

function connect(pid = process.pid) {
  const destroy = jest.fn();
  const connection = { destroy } as unknown as Socket;
  queue.add({ connection, peer: { pid, uid: 0, gid: 0 } as QueuedConnection['peer'] });
  return { connection, destroy };
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await nextTurn();
}

test('starts a worker in each turn of the event loop, in order of connection', async () => {
  const connections = [connect(), connect(), connect()].map(({ connection }) => connection);
  expect(started).toEqual([]);
  await turns(1);
  expect(started.map(({ connection }) => connection)).toEqual(connections.slice(0, 1));
  await turns(2);
  expect(started.map(({ connection }) => connection)).toEqual(connections);
});

test('clients that end while no worker may start leave the queue', async () => {
  mayStart = false;
  const [lives, ended] = [connect(), connect(GONE)];
  await turns(2);
  expect([queue.length, dropped, queue.waits]).toEqual([1, 1, true]);
  expect(ended.destroy).toHaveBeenCalled();
  silent = lives.connection;
  await until(() => queue.length === 0);
  expect(dropped).toBe(2);
});

test('with 16 workers that are no sessions yet, connections wait until one is', async () => {
  starting = 16;
  connect();
  await turns(3);
  expect([started.length, queue.length]).toEqual([0, 1]);
  starting = 15;
  queue.resume();
  await turns(1);
  expect([started.length, queue.length]).toEqual([1, 0]);
});

test('while the node has no room for a worker, connections wait for resume()', async () => {
  mayStart = false;
  connect();
  await turns(3);
  expect(started).toEqual([]);
  mayStart = true;
  queue.resume();
  await turns(1);
  expect(started).toHaveLength(1);
});

test('a connection beyond the rate limit waits for the next start without resume()', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'clearImmediate'] });
  for (let i = 0; i < 33; i++) connect();
  await turns(40);
  expect([started.length, queue.length]).toEqual([32, 1]);
  now += 250;
  jest.advanceTimersByTime(250);
  await turns(1);
  expect([started.length, queue.length]).toEqual([33, 0]);
});

test('workers that become sessions do not count in the rate limit', async () => {
  for (let i = 0; i < 40; i++) {
    connect();
    await turns(1);
    queue.noteSession();
  }
  expect(started).toHaveLength(40);
});

test('the connection of a dead client gets no worker, and the next one does', async () => {
  const dead = connect(GONE);
  const { connection } = connect();
  await turns(2);
  expect(dead.destroy).toHaveBeenCalledTimes(1);
  expect(dropped).toBe(1);
  expect(started.map((one) => one.connection)).toEqual([connection]);
});

test('a connection that needs no worker when its turn comes is closed', async () => {
  const { connection, destroy } = connect();
  silent = connection;
  await turns(2);
  expect(destroy).toHaveBeenCalledTimes(1);
  expect([started.length, dropped]).toEqual([0, 1]);
});

test('drop() closes the queued connections, and later ones are served', async () => {
  const first = connect();
  queue.drop();
  await turns(2);
  expect(first.destroy).toHaveBeenCalledTimes(1);
  expect([started.length, queue.length]).toEqual([0, 0]);
  connect();
  await turns(1);
  expect(started).toHaveLength(1);
});
