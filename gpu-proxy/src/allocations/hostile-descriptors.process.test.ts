import path from 'node:path';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { locateInstallation } from '../host/installation.js';
import type { GpuNode } from '../node.js';
import { clientEnvironment } from '../run/run.js';
import { type Attack, attack } from '../testing/hostile-client.js';
import { startNode } from '../testing/node-under-test.js';
import { RunningProgram } from '../testing/running-program.js';
import type { Allocation } from './allocation.js';

const MiB = 2 ** 20;

let directory: string;
let node: GpuNode;
let victim: Allocation;
let attacked: Allocation;
let refused: string;
const holders: number[] = [];

beforeEach(async () => {
  directory = makePrivateDirectory();
  const whyNotAllowed = ({ id }: { id: string }) =>
    id === refused ? new ProxyError('PEER_GONE', { pid: 1 }) : undefined;
  ({ node } = await startNode(path.join(directory, 'state'), { whyNotAllowed }));
  [victim, attacked] = [
    await node.create({ memory: 100 * MiB }),
    await node.create({ memory: 100 * MiB }),
  ];
  refused = '';
});
afterEach(async () => {
  for (const holder of holders.splice(0)) process.kill(holder, 'SIGKILL');
  for (const allocation of node.allocations) await node.delete(allocation, { force: true });
  await node.close();
  removePrivateDirectory(directory);
});

/**
 * Another tenant gets a GPU. This hangs if the event loop blocks in the close of a descriptor of
 * the attacker.
 */
async function serveVictim(): Promise<void> {
  const program = new RunningProgram(
    'start(); say("ready")',
    clientEnvironment(locateInstallation(), victim.socketPath),
  );
  expect(await program.line()).toBe('ready');
  program.kill();
}

const ATTACKS: [string, Attack][] = [
  ['a byte', {}],
  ['half a greeting', { first: 'half' }],
  ['an incomplete greeting', { first: 'header' }],
  ['many descriptors in many connections', { connections: 8, each: 20 }],
  ['sockets that contain each other', { shape: 'cycle', each: 3 }],
];

test.each(ATTACKS)(
  'a client that passes descriptors with %s and exits does not block other tenants',
  async (_, how) => {
    holders.push(attack(attacked.socketPath, how));
    await serveVictim();
  },
);

test.each(ATTACKS)('a refused client does not block other tenants: %s', async (_, how) => {
  refused = attacked.id;
  holders.push(attack(attacked.socketPath, how));
  await serveVictim();
});

test('a client in the backlog of a closed socket does not block other tenants', async () => {
  holders.push(attack(attacked.socketPath, { connections: 8 }));
  await node.delete(attacked, { force: true });
  await serveVictim();
});

test('the sessions of such a client end, and their memory is released', async () => {
  holders.push(attack(attacked.socketPath, { first: 'header', connections: 4, each: 4 }));
  await serveVictim();
  await attacked.whenIdle();
  expect(attacked.memoryUsed).toBe(0);
});
