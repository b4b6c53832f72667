// Options of a node that other processes follow, from the configuration file to these processes.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { RedisLedger, type RedisOptions } from '@nvidia-virtual/ledger';
import { makeCertificates } from '@nvidia-virtual/ledger/testing/certificates';
import { RedisServer } from '@nvidia-virtual/ledger/testing/redis-server';
import type { AllocationMessage, NodeUseMessage } from '@nvidia-virtual/node-state/admin/messages';
import { arbiterSocketIn } from '@nvidia-virtual/node-state/paths';
import { userOf } from '@nvidia-virtual/service/process-table';
import { eventually, until } from '@nvidia-virtual/service/testing/eventually';
import { CommandUnderTest, gpuProxy, Place } from './testing/command-under-test.js';
import { cudaProgram } from './testing/cuda-program.js';
import { killArbiter } from './testing/kill-arbiter.js';

const HOLDING = cudaProgram('start(); say("ready"); sys.stdin.readline()');
let place: Place;
let state: string;
let programs: CommandUnderTest[];

beforeEach(() => {
  place = new Place();
  // Workers that run as separate users need access to the state directory.
  chmodSync(place.directory, 0o755);
  state = path.join(place.directory, 'state');
  programs = [];
});
afterEach(async () => {
  for (const program of programs) program.process.kill('SIGKILL');
  await Promise.all(programs.map((program) => program.end()));
  killArbiter(state);
  place.remove();
});

function configure(more: object): string {
  const file = path.join(place.directory, 'node.yaml');
  writeFileSync(file, JSON.stringify({ node: 'node-1', state, backend: 'simulated', ...more }));
  return file;
}

async function serve(options: object): Promise<CommandUnderTest> {
  const server = new CommandUnderTest(place, ['serve', '--config', configure(options)]);
  programs.push(server);
  await server.printed('"msg":"serving"');
  return server;
}

function create() {
  return gpuProxy(place, 'create', '--state', state, '--memory', '64MiB', '--share', '50');
}

/** Runs a program in a new allocation. @returns the id of the allocation */
async function run(command: readonly string[]): Promise<string> {
  const { stdout } = await create();
  const id = stdout.split(' ')[0] as string;
  const program = new CommandUnderTest(place, [
    'run',
    '--state',
    state,
    '--allocation',
    id,
    '--',
    ...command,
  ]);
  programs.unshift(program);
  await program.printed('ready');
  return id;
}

async function look(id: string): Promise<AllocationMessage> {
  const { allocations } = JSON.parse(
    (await gpuProxy(place, 'ls', '--state', state, '-o', 'json')).stdout,
  ) as NodeUseMessage;
  return allocations.find((allocation) => allocation.id === id) as AllocationMessage;
}

test('window: it is sent to the arbiter, and again if it changed at SIGHUP', async () => {
  const windows: string[] = [];
  const arbiter = createServer((connection) => {
    createInterface(connection).on('line', (line) => {
      if (line.startsWith('window ')) windows.push(line);
      if (line === 'figures') connection.write('end\n');
    });
    connection.on('error', () => {});
  });
  const socket = arbiterSocketIn(state);
  mkdirSync(path.dirname(socket), { recursive: true });
  await once(arbiter.listen(socket), 'listening');
  try {
    const server = await serve({ window: '1ms' });
    await until(() => windows.length > 0);
    configure({ window: '100ms' });
    server.process.kill('SIGHUP');
    await until(() => windows.length > 1);
    expect(windows).toEqual(['window 1000', 'window 100000']);
    server.process.kill();
    await server.end();
  } finally {
    arbiter.close();
  }
});

const asRoot = process.getuid?.() === 0 ? test : test.skip;
/** No other process has it or the next ones, also if two of these tests run at once. */
const UID = 10_000_000 + 20 * process.pid;

asRoot('workerUids: the workers of each allocation run as a separate user', async () => {
  await serve({ workerUids: `${UID}-${UID + 9}` });
  const ids = await Promise.all([run(HOLDING), run(HOLDING)]);
  const allocations = await Promise.all(ids.map(look));
  const users = allocations.map(({ sessions }) => {
    const status = readFileSync(`/proc/${sessions[0]?.workerPid}/status`, 'utf8');
    return [/^Uid:\t(.*)$/m, /^Gid:\t(.*)$/m].map((line) =>
      line.exec(status)?.[1]?.split('\t').map(Number),
    );
  });
  const all = (uid: number) => [Array(4).fill(uid), Array(4).fill(uid)];
  expect(users.sort()).toEqual([all(UID), all(UID + 1)]);
});

asRoot('workerUids: an id that a process has is given to no allocation', async () => {
  await serve({ workerUids: `${UID + 10}-${UID + 11}` });
  const other = spawn('sleep', ['1000'], { uid: UID + 10 });
  try {
    const { sessions } = await look(await run(HOLDING));
    expect(userOf(sessions[0]?.workerPid as number)).toBe(UID + 11);
    const { stderr } = await create();
    expect(stderr).toContain('All 2 user ids for workers are in use, 1 of them only by processes');
  } finally {
    other.kill('SIGKILL');
    await once(other, 'exit');
  }
});

test('ledger: over TLS, with a password file and a client certificate', async () => {
  const { caFile, server: its, client } = makeCertificates(place.directory);
  const password = path.join(place.directory, 'password');
  writeFileSync(password, 'secret\n');
  const redis = await RedisServer.start({
    args: ['--requirepass', 'secret'],
    password: 'secret',
    tls: { caFile, ...its, clientCertificates: true },
  });
  const options: RedisOptions = { url: redis.url, passwordFile: password, caFile, ...client };
  const reader = new RedisLedger({ redis: options });
  try {
    const tls = { ca: caFile, cert: client.certificateFile, key: client.keyFile };
    await serve({ ledger: { url: redis.url, passwordFile: password, tls } });
    const id = await run(HOLDING);
    await eventually(async () => {
      const [node] = await reader.snapshots();
      expect(
        node?.allocations.map(({ specification, sessions }) => [specification.id, sessions.length]),
      ).toEqual([[id, 1]]);
    });
  } finally {
    await reader.close();
    await redis.remove();
  }
});

test('an oversubscribed GPU grants more than its memory', async () => {
  const options = { gpu: ['0'], hostMemory: '24GiB', oversubscription: { 0: 2 } };
  await serve(options);
  const create = () => gpuProxy(place, 'create', '--state', state, '--memory', '6GiB');
  expect([(await create()).status, (await create()).status]).toEqual([0, 0]);
  expect((await create()).stderr).toContain('Of its 8 GiB, oversubscribed 2 times, 12 GiB are');
});
