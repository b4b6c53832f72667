import { statSync } from 'node:fs';
import path from 'node:path';
import { AdminClient } from '@nvidia-virtual/node-state/admin/client';
import { adminSocketIn } from '@nvidia-virtual/node-state/paths';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import type { GpuNode } from '../node.js';
import { startNode } from '../testing/node-under-test.js';
import { AdminServer } from './server.js';

const MiB = 2 ** 20;

let directory: string;
let state: string;
let node: GpuNode;
let server: AdminServer;
let client: AdminClient;

beforeEach(async () => {
  directory = makePrivateDirectory();
  state = path.join(directory, 'state');
  ({ node } = await startNode(state));
  server = await AdminServer.start(node, adminSocketIn(state));
  client = await AdminClient.connect(state);
});
afterEach(async () => {
  client.close();
  server.close();
  await node.close();
  removePrivateDirectory(directory);
});

test('only the user of the node can connect', () => {
  expect(statSync(adminSocketIn(state)).mode & 0o777).toBe(0o600);
});

test('create passes the requested values on', async () => {
  const asked = {
    name: 'train',
    memoryBytes: 64 * MiB,
    sharePercent: 25,
    policy: 'POLICY_FIXED',
    priority: -5,
    limits: { sessions: 3 },
  } as const;
  const made = await client.call('createAllocation', asked);
  expect(made).toMatchObject({
    ...asked,
    limits: { sessions: 3, threads: 4096 },
    draining: false,
    suspended: false,
    state: 'MEMORY_STATE_RESIDENT',
    outBytes: 0,
    mode: 'SHARING_MODE_EXCLUSIVE',
  });
  expect(made.socketPath).toBe(path.join(state, 'allocations', made.id, 'client', 'gpu.sock'));
  expect(node.find('train').specification).toMatchObject({
    id: made.id,
    share: 25,
    policy: 'fixed',
    priority: -5,
  });
  expect(await client.call('getAllocation', { id: 'train' })).toEqual(made);
  expect((await client.call('listAllocations', {})).allocations).toEqual([made]);
  const { gpus } = await client.call('listGpus', {});
  expect(gpus).toEqual([
    expect.objectContaining({ memoryLeftBytes: 8192 * MiB - 64 * MiB, fixedShareLeftPercent: 75 }),
  ]);
  await client.call('deleteAllocation', { id: made.id, force: false });
  expect(node.allocations).toEqual([]);
});

test('values that were not requested have defaults', async () => {
  expect(await client.call('createAllocation', {})).toMatchObject({
    name: '',
    memoryBytes: 8192 * MiB,
    sharePercent: 100,
    policy: 'POLICY_BURST',
    priority: 0,
    limits: { sessions: 64 },
  });
});

test('an error arrives with the message and code of the node', async () => {
  const refused = (request: Promise<unknown>) =>
    request
      .then(() => undefined)
      .catch(({ code, message }: { code: string; message: string }) => [code, message]);
  expect(await refused(client.call('getAllocation', { id: 'x' }))).toEqual([
    'ALLOCATION_UNKNOWN',
    expect.stringContaining('No allocation has the id or name x.'),
  ]);
  expect(await refused(client.call('createAllocation', { memoryBytes: 9000 * MiB }))).toEqual([
    'MEMORY_NOT_LEFT',
    expect.stringContaining('8.8 GiB was requested'),
  ]);
  expect(await refused(client.call('createAllocation', { sharePercent: 101 }))).toEqual([
    'OPTION_VALUE',
    expect.stringContaining('share is 101'),
  ]);
});

test('usage is sent periodically', async () => {
  await client.call('createAllocation', { name: 'a', memoryBytes: MiB });
  const seen: string[][] = [];
  for await (const use of client.watchUse(100)) {
    expect(use.gpus).toHaveLength(1);
    seen.push(use.allocations.map(({ name }) => name));
    if (seen.length === 1) await client.call('drainAllocation', { id: 'a' });
    if (use.allocations.length === 0) break;
  }
  expect(seen.at(0)).toEqual(['a']);
  expect(seen.at(-1)).toEqual([]);
});

test('watchers are told when the node ends', async () => {
  const watching = (async () => {
    for await (const _ of client.watchUse(100)) server.close();
  })();
  await expect(watching).rejects.toThrow(
    `The gpu-proxy that serves the state directory ${state} did not answer`,
  );
  await expect(AdminClient.connect(state)).rejects.toThrow(
    `No gpu-proxy serves the state directory ${state}: no such file or directory.`,
  );
});
