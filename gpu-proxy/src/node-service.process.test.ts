import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import {
  type AllocationSpecification,
  RedisLedger,
  type SessionRecord,
} from '@nvidia-virtual/ledger';
import { RedisServer } from '@nvidia-virtual/ledger/testing/redis-server';
import { sessionsOf, snapshot } from '@nvidia-virtual/ledger/testing/snapshots';
import type { NodeUseMessage } from '@nvidia-virtual/node-state/admin/messages';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { CommandUnderTest, gpuProxy, Place } from './testing/command-under-test.js';
import { cudaProgram } from './testing/cuda-program.js';
import { parseExposition } from './testing/exposition.js';
import { killArbiter } from './testing/kill-arbiter.js';

const NODE = 'node-1';
const MiB = 2 ** 20;
/** Copies 1 MiB to the GPU, and holds 64 MiB until it is told to end. */
const HOLDING = cudaProgram(`
start()
address = ctypes.c_uint64()
must("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(64 * MiB))
must("cuMemcpyHtoD_v2", address, ctypes.create_string_buffer(MiB), ctypes.c_size_t(MiB))
say("ready"); sys.stdin.readline()`);

let redis: RedisServer;
let reader: RedisLedger;
let place: Place;
let state: string;
let http: string;
let config: string;
let server: CommandUnderTest;
let programs: CommandUnderTest[];

beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.remove());

beforeEach(async () => {
  await redis.command('FLUSHALL');
  reader = new RedisLedger({ redis: redis.place });
  place = new Place();
  programs = [];
  state = inPlace('state');
  http = inPlace('http.sock');
  config = inPlace('node.yaml');
  configure({ warmWorkers: { 7: 1 } });
  await serve();
});
afterEach(async () => {
  for (const program of programs) program.process.kill('SIGKILL');
  server.process.kill('SIGTERM');
  await Promise.all([server, ...programs].map((command) => command.end()));
  await reader.close();
  killArbiter(state);
  place.remove();
});

function inPlace(name: string): string {
  return path.join(place.directory, name);
}

function configure(more: object): void {
  writeFileSync(
    config,
    JSON.stringify({
      node: NODE,
      state,
      backend: 'simulated',
      http,
      ledger: { url: redis.url },
      ...more,
    }),
  );
}

async function serve(): Promise<void> {
  server = new CommandUnderTest(place, ['serve', '--config', config]);
  await server.printed('"msg":"serving"');
}

async function create(...args: string[]): Promise<string> {
  const { status, stdout, stderr } = await gpuProxy(place, 'create', '--state', state, ...args);
  expect([status, stderr]).toEqual([0, '']);
  return stdout.split(' ')[0] as string;
}

async function runIn(allocation: string): Promise<CommandUnderTest> {
  const program = new CommandUnderTest(place, [
    'run',
    '--state',
    state,
    '--allocation',
    allocation,
    '--',
    ...HOLDING,
  ]);
  programs.push(program);
  await program.printed('ready');
  return program;
}

async function finish(program: CommandUnderTest): Promise<void> {
  program.process.stdin.end('\n');
  expect(await program.end()).toMatchObject({ status: 0, stderr: '' });
}

async function ask(
  target: string,
  socketPath = http,
): Promise<{ status: number | undefined; body: string }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ socketPath, path: target, agent: false }, resolve).once('error', reject).end();
  });
  return { status: response.statusCode, body: await text(response) };
}

/** A value of /metrics. */
async function figure(
  name: string,
  labels: object = {},
  socketPath = http,
): Promise<number | undefined> {
  const { body } = await ask('/metrics', socketPath);
  const samples = parseExposition(body).get(`nvidia_virtual_${name}`)?.samples ?? [];
  return samples.find((sample) =>
    Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  )?.value;
}

/** The content of the node's directories. */
function truth(): [AllocationSpecification, SessionRecord[]][] {
  const read = (...names: string[]) =>
    JSON.parse(readFileSync(path.join(state, 'allocations', ...names), 'utf8'));
  return readdirSync(path.join(state, 'allocations'))
    .sort()
    .map((id) => {
      const sessions = readdirSync(path.join(state, 'allocations', id, 'sessions'));
      return [
        read(id, 'allocation.json'),
        sessions.sort().map((number) => read(id, 'sessions', number, 'session.json')),
      ];
    });
}

/** The content of the ledger. */
async function told(): Promise<[AllocationSpecification, SessionRecord[]][]> {
  const [node] = await reader.snapshots();
  const allocations = [...(node?.allocations ?? [])].sort((a, b) =>
    a.specification.id < b.specification.id ? -1 : 1,
  );
  return allocations.map(({ specification, sessions }) => [
    specification,
    sessions.map(({ record }) => record).sort((a, b) => a.number - b.number),
  ]);
}

async function ledgerIsTrue(): Promise<void> {
  await eventually(async () => expect(await told()).toEqual(truth()));
}

test('ledger and metrics have the sessions, and count them after their end', async () => {
  const id = await create('--name', 'train', '--memory', '1GiB', '--share', '25');
  const program = await runIn('train');
  const labels = { node: NODE, allocation: id, name: 'train' };
  await ledgerIsTrue();
  expect(truth()).toEqual([
    [
      expect.objectContaining({
        id,
        share: 25,
        limits: { sessions: 64, pinnedMemory: 2 ** 34, threads: 4096, handles: 1048576 },
      }),
      [expect.anything()],
    ],
  ]);
  await eventually(async () =>
    expect(sessionsOf(...(await reader.snapshots()))[0]?.use).toMatchObject({
      memory: 64 * MiB,
      contexts: 1,
    }),
  );
  expect(await reader.snapshots()).toEqual([
    expect.objectContaining({ node: NODE, gpus: [expect.objectContaining({ index: 0 })] }),
  ]);

  expect(await figure('allocation_memory_used_bytes', labels)).toBe(64 * MiB);
  expect(await figure('sessions_started_total', { worker: 'cold' })).toBe(1);
  expect(await figure('ledger_connected')).toBe(1);
  expect(JSON.parse((await ask('/readyz')).body)).toEqual({ ready: true });
  expect(server.stdout).toContain(
    '"key":"warmWorkers","msg":"GPU 7 does not exist here. The GPUs are: 0 (GPU-',
  );

  await finish(program);
  await eventually(() => expect(truth()).toEqual([[expect.objectContaining({ id }), []]]));
  await ledgerIsTrue();
  expect(await figure('sessions_ended_total', { cause: 'client_ended' })).toBe(1);
  expect(
    await figure('allocation_copied_bytes_total', { ...labels, direction: 'host_to_device' }),
  ).toBe(MiB);
  expect(await figure('sessions_started_total', { worker: 'cold' })).toBe(1);
});

test('after a kill, the next proxy updates the ledger, and counts from 0', async () => {
  const id = await create('--memory', '1GiB');
  const [stays, goes] = [await runIn(id), await runIn(id)];
  await ledgerIsTrue();
  const counted = () =>
    Promise.all([
      figure('sessions_started_total', { worker: 'cold' }),
      figure('sessions_ended_total', { cause: 'client_ended' }),
      figure('allocation_copied_bytes_total', { allocation: id, direction: 'host_to_device' }),
    ]);
  await eventually(async () => expect(await counted()).toEqual([2, 0, 2 * MiB]));
  server.process.kill('SIGKILL');
  await server.end();
  goes.process.kill('SIGTERM');
  await goes.end();
  await serve();
  await eventually(() =>
    expect(truth()).toEqual([[expect.anything(), [expect.objectContaining({ number: 1 })]]]),
  );
  await ledgerIsTrue();
  expect(await counted()).toEqual([0, 1, 2 * MiB]);
  await finish(stays);
  await eventually(() => expect(truth()).toEqual([[expect.anything(), []]]));
  await ledgerIsTrue();
  server.process.kill('SIGTERM');
  await server.end();
  await serve();
  expect(await counted()).toEqual([0, 0, 0]);
});

test('a Redis that lost its data gets all of it again', async () => {
  await runIn(await create('--memory', '1GiB'));
  await ledgerIsTrue();
  await redis.command('FLUSHALL');
  await ledgerIsTrue();
});

test('without its Redis a node serves, and reports it', async () => {
  await redis.kill();
  const id = await create('--memory', '1GiB');
  await eventually(async () =>
    expect(JSON.parse((await ask('/readyz')).body)).toEqual({
      ready: true,
      notes: { ledger: expect.any(String) },
    }),
  );
  expect(await figure('ledger_connected')).toBe(0);
  await finish(await runIn(id));
  await redis.start();
  await ledgerIsTrue();
  await server.printed('"ledger":"away"');
});

test('a node whose name is taken serves, and reports that the ledger lacks it', async () => {
  server.process.kill('SIGTERM');
  await server.end();
  await redis.command('FLUSHALL');
  const other = new RedisLedger({
    redis: redis.place,
    writer: { node: NODE, owner: 'another machine', claimGpus: false },
  });
  try {
    other.publish(snapshot({ node: NODE }));
    await eventually(async () => expect(await reader.snapshots()).toHaveLength(1));
    await serve();
    const ledger = expect.stringContaining(
      `Another machine already keeps the ledger as node ${NODE}.`,
    );
    await eventually(async () =>
      expect(JSON.parse((await ask('/readyz')).body)).toEqual({ ready: true, notes: { ledger } }),
    );
    expect(await figure('ledger_connected')).toBe(0);
    await server.printed('"ledger":"refused"');
  } finally {
    await other.close();
    await redis.command('FLUSHALL');
  }
  await eventually(async () =>
    expect(JSON.parse((await ask('/readyz')).body)).toEqual({ ready: true }),
  );
  expect(await figure('ledger_connected')).toBe(1);
});

test('sessions that gpu-proxy ends are counted as such', async () => {
  const id = await create('--memory', '1GiB');
  const program = await runIn(id);
  expect((await gpuProxy(place, 'delete', '--state', state, id, '--force')).status).toBe(0);
  program.process.stdin.end('\n');
  await program.end();
  expect(await figure('sessions_ended_total', { cause: 'killed' })).toBe(1);
  expect(await figure('worker_gone_seconds', { le: '+Inf' })).toBe(1);
  await ledgerIsTrue();
});

test('SIGHUP: reloadable options take effect, programs continue', async () => {
  const program = await runIn(await create('--memory', '1GiB'));
  const [log, moved] = [inPlace('node.log'), inPlace('moved.sock')];
  configure({
    node: 'other',
    log,
    logLevel: 'debug',
    http: moved,
    window: '20ms',
    warmWorkers: 1,
    limits: { sessions: 3 },
  });
  server.process.kill('SIGHUP');
  await eventually(async () => expect(await figure('gpu_warm_workers', {}, moved)).toBe(1));
  await expect(ask('/healthz')).rejects.toThrow(/ENOENT|ECONNREFUSED/);
  expect(server.stdout).toContain('"msg":"node changed, which needs a restart of gpu-proxy"');

  const second = await create('--memory', '1GiB');
  const { node, allocations } = JSON.parse(
    (await gpuProxy(place, 'ls', '--state', state, '-o', 'json')).stdout,
  ) as NodeUseMessage & {
    node: string;
  };
  expect([node, allocations.find(({ id }) => id === second)?.limits.sessions]).toEqual([NODE, 3]);
  await finish(await runIn(second));
  expect(await figure('sessions_started_total', { worker: 'warm' }, moved)).toBe(1);
  await finish(program);
  expect(readFileSync(log, 'utf8')).toContain('"msg":"allocation made"');

  renameSync(log, `${log}.1`);
  server.process.kill('SIGHUP');
  await eventually(() => expect(existsSync(log)).toBe(true));

  configure({ window: '1h', log, http: moved });
  server.process.kill('SIGHUP');
  await eventually(() =>
    expect(readFileSync(log, 'utf8')).toContain(
      'The new configuration has mistakes and is not used.',
    ),
  );
  expect((await ask('/healthz', moved)).status).toBe(200);
});

test('an invalid configuration is refused with all its errors', async () => {
  configure({ window: '5', colour: 'red', limits: { threads: 0 } });
  const { status, stdout, stderr } = await gpuProxy(
    place,
    'serve',
    '--config',
    config,
    '--share',
    '1',
  ).then((first) => {
    expect([first.status, first.stderr]).toEqual([
      2,
      expect.stringContaining("unknown option '--share'"),
    ]);
    return gpuProxy(place, 'serve', '--config', config, '--warm-workers', 'many');
  });
  expect([status, stdout]).toEqual([2, '']);
  const sentences = [
    'The configuration has 4 errors',
    '--warm-workers is "many"',
    'window is "5"',
    'colour is not an option',
    'limits.threads is "0"',
  ];
  for (const sentence of sentences) expect(stderr).toContain(sentence);
});
