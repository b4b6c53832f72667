import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { prepareGrant } from '@nvidia-virtual/node-state/grant';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { pino } from 'pino';
import { ClientSocket } from '../allocations/client-socket.js';
import { Addon } from '../host/addon.js';
import { locateInstallation } from '../host/installation.js';
import { StateDirectory } from '../host/state-directory.js';
import type { GpuNode } from '../node.js';
import { startNode } from '../testing/node-under-test.js';
import { Grants } from './grants.js';

const MiB = 2 ** 20;

let directory: string;
let node: GpuNode;
let grants: Grants;

beforeEach(async () => {
  directory = makePrivateDirectory();
  await start();
});
afterEach(() => {
  leave();
  removePrivateDirectory(directory);
});

async function start(): Promise<void> {
  const addon = new Addon(locateInstallation().addon);
  const state = StateDirectory.open(directory, addon);
  ({ node } = await startNode(directory, { state }));
  // Nothing connects in this test.
  const binding = { bind: () => Promise.reject(new Error('nobody is to be bound')) };
  grants = new Grants({ node, state, addon, binding, logger: pino({ level: 'silent' }) });
}

function leave(): void {
  grants.leave();
  node.leave();
}

test('a grant that is an allocation is not served as a grant, even if unreadable', async () => {
  const [fresh, used] = [prepareGrant(directory, ['slot-0']), prepareGrant(directory, ['slot-1'])];
  const socket = new ClientSocket(
    path.join(used.clientDirectory, 'gpu.sock'),
    node.closer,
    () => {},
  );
  await node.create({ memory: 100 * MiB, grant: { ...used.grant, socket } });
  leave();
  const file = path.join(directory, 'allocations', used.grant.id, 'allocation.json');
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, JSON.stringify({ ...JSON.parse(text), version: 2 }));
  await start();
  grants.look();
  expect(node.allocations).toEqual([]);
  expect(grants.all.map(({ id }) => id)).toEqual([fresh.grant.id]);
  expect(existsSync(path.join(path.dirname(file), 'quota'))).toBe(true);

  leave();
  writeFileSync(file, text);
  await start();
  expect(node.allocations.map(({ id }) => id)).toEqual([used.grant.id]);
  expect(grants.all.map(({ id }) => id)).toEqual([fresh.grant.id]);
});
