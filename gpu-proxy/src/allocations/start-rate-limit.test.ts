import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import {
  makePrivateDirectory,
  removePrivateDirectory,
} from '@nvidia-virtual/service/private-directory';
import { startNode } from '../testing/node-under-test.js';
import { StartRateLimit } from './start-rate-limit.js';

let now = 0;
const allowance = () => new StartRateLimit(() => now);

test('failed starts are limited to 4 per second after a burst of 32', () => {
  const starts = allowance();
  let count = 0;
  for (const end = now + 10_000; now <= end; now += 10) {
    for (; starts.wait() === 0; count++) starts.take();
  }
  expect(count).toBe(32 + 4 * 10);
});

test('the wait is as long as it takes until the next start', () => {
  const starts = allowance();
  while (starts.wait() === 0) starts.take();
  expect(starts.wait()).toBe(250);
  now += 250;
  expect(starts.wait()).toBe(0);
});

test('starts that become sessions are never delayed', () => {
  const starts = allowance();
  for (let i = 0; i < 1000; i++) {
    expect(starts.wait()).toBe(0);
    starts.take();
    starts.giveBack();
  }
});

test('garbage on a socket starts few workers', async () => {
  const directory = makePrivateDirectory();
  const { node } = await startNode(path.join(directory, 'state'));
  try {
    const allocation = await node.create({ limits: { sessions: 16 } });
    const begin = performance.now();
    for (let i = 0; i < 300; i++) {
      const connection = connect(allocation.socketPath).on('error', () => {});
      await once(connection, 'connect');
      connection.write('This is no hello.'.repeat(100));
      setTimeout(() => connection.destroy(), 100);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const started = Number(readFileSync(path.join(allocation.directory, 'last-session'), 'utf8'));
    const seconds = (performance.now() - begin) / 1000;
    expect(started).toBeGreaterThan(0);
    expect(started).toBeLessThanOrEqual(32 + 4 * seconds + 1);
    await node.delete(allocation, { force: true });
  } finally {
    await node.close();
    removePrivateDirectory(directory);
  }
});
