import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { jest } from '@jest/globals';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { startNode } from '../testing/node-under-test.js';
import { StartRateLimit } from './start-rate-limit.js';

let now = 0;
const newLimit = () => new StartRateLimit(() => now);

test('failed starts are limited to 4 per second after a burst of 32', () => {
  const starts = newLimit();
  let count = 0;
  for (const end = now + 10_000; now <= end; now += 10) {
    for (; starts.wait() === 0; count++) starts.take();
  }
  expect(count).toBe(32 + 4 * 10);
});

test('wait() returns the time until the next start', () => {
  const starts = newLimit();
  while (starts.wait() === 0) starts.take();
  expect(starts.wait()).toBe(250);
  now += 250;
  expect(starts.wait()).toBe(0);
});

test('starts that become sessions are not limited', () => {
  const starts = newLimit();
  for (let i = 0; i < 1000; i++) {
    expect(starts.wait()).toBe(0);
    starts.take();
    starts.giveBack();
  }
});

test('garbage on a socket starts few workers', async () => {
  const directory = makePrivateDirectory();
  let milliseconds = performance.now();
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => milliseconds);
  const { node } = await startNode(path.join(directory, 'state'));
  const connections: Socket[] = [];
  try {
    const allocation = await node.create({ limits: { sessions: 16 } });
    /** Connects, and returns how many workers were started so far. */
    const connectOnce = async () => {
      const connection = connect(allocation.socketPath).on('error', () => {});
      connections.push(connection);
      await once(connection, 'connect');
      connection.write('This is no hello.'.repeat(100));
      const file = path.join(allocation.directory, 'last-session');
      return existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0;
    };
    for (const limit of [32, 36]) {
      await until(async () => (await connectOnce()) === limit);
      for (let i = 0; i < 50; i++) expect(await connectOnce()).toBe(limit);
      milliseconds += 1000;
    }
    await node.delete(allocation, { force: true });
  } finally {
    for (const connection of connections) connection.destroy();
    await node.close();
    clock.mockRestore();
    removePrivateDirectory(directory);
  }
});
