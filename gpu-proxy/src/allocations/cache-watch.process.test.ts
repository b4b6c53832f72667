import {
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import type { ProxyError } from '@nvidia-virtual/service/errors';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { pino } from 'pino';
import { locateInstallation } from '../host/installation.js';
import { clientEnvironment } from '../run/run.js';
import { startNode } from '../testing/node-under-test.js';
import { RunningProgram } from '../testing/running-program.js';
import { CacheWatch } from './cache-watch.js';

const MiB = 2 ** 20;
let directory: string;

beforeEach(() => {
  directory = makePrivateDirectory();
});
afterEach(() => removePrivateDirectory(directory));

/** Whether a cache is found to exceed this limit. */
async function isBeyond(limit: number): Promise<boolean> {
  const errors: ProxyError[] = [];
  const allocations = () => [
    { id: 'a', directories: [directory], end: (error: ProxyError) => errors.push(error) },
  ];
  const watch = new CacheWatch({
    allocations,
    limit,
    everyMs: 1e6,
    logger: pino({ level: 'silent' }),
  });
  await watch.look();
  watch.end();
  return errors.length > 0;
}

test('all files of a cache count, except links and files without disk blocks', async () => {
  mkdirSync(path.join(directory, 'a/b'), { recursive: true });
  for (const file of ['one', 'a/two', 'a/b/three'])
    writeFileSync(path.join(directory, file), Buffer.alloc(MiB, 1));
  symlinkSync('/usr', path.join(directory, 'linked'));
  writeFileSync(path.join(directory, 'sparse'), '');
  truncateSync(path.join(directory, 'sparse'), 100 * MiB);
  expect([await isBeyond(2 * MiB), await isBeyond(4 * MiB)]).toEqual([true, false]);
});

test('a missing cache is no error', async () => {
  const directories = [path.join(directory, 'none')];
  const ended: ProxyError[] = [];
  const watch = new CacheWatch({
    allocations: () => [{ id: 'a', directories, end: (error) => ended.push(error) }],
    logger: pino({}, { write: (line: string) => Promise.reject(new Error(line)) }),
  });
  await watch.look();
  watch.end();
  expect(ended).toEqual([]);
});

test.each([
  ['cache', []],
  ['sharing', ['exports']],
])('beyond the limit, %s is emptied, sessions end, and new ones start', async (name, left) => {
  const { node } = await startNode(path.join(directory, 'state'), {
    cacheLimit: MiB,
    cacheEveryMs: 100,
  });
  const allocation = await node.create({ memory: 100 * MiB });
  const start = () =>
    new RunningProgram(
      'start(); say("ready"); time.sleep(1000)',
      clientEnvironment(locateInstallation(), allocation.socketPath),
    );
  const first = start();
  expect(await first.line()).toBe('ready');
  const written = path.join(allocation.directory, name);
  const before = statSync(written);
  const told = new Promise<ProxyError>((resolve) =>
    node.once('trouble', (_, error) => resolve(error)),
  );
  writeFileSync(path.join(written, 'large'), Buffer.alloc(2 * MiB, 1));
  expect((await told).code).toBe('CACHE_BEYOND_LIMIT');
  await allocation.whenIdle();
  first.kill();
  const second = start();
  expect(await second.line()).toBe('ready');
  expect(readdirSync(written)).toEqual(left);
  expect([statSync(written).uid, statSync(written).mode]).toEqual([before.uid, before.mode]);
  second.kill();
  await allocation.whenIdle();
  await node.close();
});
