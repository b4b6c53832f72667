import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { createConnection, type Socket } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { type HttpOptions, HttpService } from './http.js';

const LOOPBACK = { host: '127.0.0.1', port: 0 };
let directory: string;
let service: HttpService;

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'http-'));
});
afterEach(async () => {
  await service.move(undefined);
  rmSync(directory, { recursive: true });
});

function make(options: Partial<HttpOptions> = {}): HttpService {
  const metrics = { contentType: 'text/plain; version=0.0.4', exposition: async () => 'a 1\n' };
  service = new HttpService({
    metrics,
    conditions: {},
    logger: pino({ enabled: false }),
    ...options,
  });
  return service;
}

function place(): { socketPath: string } | { host: string; port: string } {
  const { address = '' } = service;
  if (address.startsWith('/')) return { socketPath: address };
  const { hostname, port } = new URL(address);
  return { host: hostname, port };
}

async function ask(target: string, method = 'GET', headers: Record<string, string> = {}) {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ ...place(), path: target, method, headers, agent: false }, resolve)
      .once('error', reject)
      .end();
  });
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

function connect(localAddress = '127.0.0.1'): Socket {
  const { hostname, port } = new URL(service.address as string);
  return createConnection({ port: Number(port), host: hostname, localAddress }).on(
    'error',
    () => {},
  );
}

function ended(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once('close', resolve).resume());
}

const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
);

test.each(hasIpv6 ? ['127.0.0.1', '[::1]'] : ['127.0.0.1'])(
  'without a host it listens on %s',
  async (host) => {
    await make().move({ port: 0 });
    const { port } = new URL(service.address ?? '');
    expect((await fetch(`http://${host}:${port}/healthz`)).status).toBe(200);
  },
);

test('answers over TCP', async () => {
  await make().move(LOOPBACK);
  expect(service.address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(await ask('/metrics?x=1')).toMatchObject({
    status: 200,
    body: 'a 1\n',
    headers: { 'content-type': 'text/plain; version=0.0.4' },
  });
  expect(await ask('/healthz')).toMatchObject({ status: 200, body: '{"alive":true}\n' });
  expect(await ask('/healthz', 'HEAD')).toMatchObject({
    status: 200,
    body: '',
    headers: { 'content-length': '15' },
  });
});

test('/readyz reports failed conditions', async () => {
  let gpus: string | undefined = 'the GPUs have not been read yet';
  await make({ conditions: { gpus: () => gpus, sockets: () => undefined } }).move(LOOPBACK);
  const unready = await ask('/readyz');
  expect([unready.status, JSON.parse(unready.body)]).toEqual([
    503,
    { ready: false, notReady: { gpus: 'the GPUs have not been read yet' } },
  ]);
  gpus = undefined;
  expect(await ask('/readyz')).toMatchObject({ status: 200, body: '{"ready":true}\n' });
});

test('/readyz reports notes without effect on readiness', async () => {
  await make({ notes: { ledger: () => 'it is unreachable', other: () => undefined } }).move(
    LOOPBACK,
  );
  expect(await ask('/readyz')).toMatchObject({
    status: 200,
    body: '{"ready":true,"notes":{"ledger":"it is unreachable"}}\n',
  });
});

test('other paths and methods are refused', async () => {
  await make().move(LOOPBACK);
  expect(await ask('/')).toMatchObject({
    status: 404,
    body: 'This server serves /metrics, /healthz and /readyz.\n',
  });
  expect(await ask('/metrics', 'POST')).toMatchObject({
    status: 405,
    headers: { allow: 'GET, HEAD', connection: 'close' },
  });
  expect(await ask('/metrics', 'GET', { long: 'x'.repeat(9000) })).toMatchObject({ status: 431 });
});

test('metrics that fail or time out are an error', async () => {
  const metrics = {
    contentType: '',
    exposition: () => Promise.reject(new Error('the arbiter is unreachable.')),
  };
  await make({ metrics }).move(LOOPBACK);
  expect(await ask('/metrics')).toMatchObject({
    status: 503,
    body: '/metrics failed: the arbiter is unreachable.\n',
  });
  await service.move(undefined);
  await make({
    metrics: { ...metrics, exposition: () => new Promise(() => {}) },
    timeout: 100,
  }).move(LOOPBACK);
  expect(await ask('/metrics')).toMatchObject({
    status: 503,
    body: '/metrics failed: the metrics were not ready within 0.1 s.\n',
  });
});

test('a client that sends nothing, or half a request, is disconnected', async () => {
  await make({ timeout: 200 }).move(LOOPBACK);
  const [silent, slow] = [connect(), connect()];
  slow.write('GET /metrics HTTP/1.1\r\nHost: x\r\n');
  await Promise.all([ended(silent), ended(slow)]);
});

test('a client that opens very many connections keeps no other client away', async () => {
  await make({ connections: 4, timeout: 60_000 }).move(LOOPBACK);
  const greedy = Array.from({ length: 4 }, () => connect('127.0.0.2'));
  await Promise.all(greedy.map((socket) => once(socket, 'connect')));
  const ends = greedy.map(ended);
  expect(await ask('/healthz')).toMatchObject({ status: 200 });
  await Promise.race(ends);
  expect(greedy.filter(({ destroyed }) => destroyed)).toHaveLength(1);
  for (const socket of greedy) socket.destroy();
});

test('a Unix socket is private, replaces a stale one, and ends with the service', async () => {
  const socket = path.join(directory, 'http.sock');
  const left =
    `require('net').createServer().listen('${socket}', () => ` +
    `process.kill(process.pid, 'SIGKILL'))`;
  expect(spawnSync(process.execPath, ['-e', left], { timeout: 60_000 }).signal).toBe('SIGKILL');
  expect(existsSync(socket)).toBe(true);
  await make().move({ path: socket });
  expect(statSync(socket).mode & 0o777).toBe(0o600);
  expect(await ask('/healthz')).toMatchObject({ status: 200 });
  const other = new HttpService({
    metrics: { contentType: '', exposition: async () => '' },
    conditions: {},
    logger: pino({ enabled: false }),
  });
  await expect(other.move({ path: socket })).rejects.toThrow(
    `Metrics and health cannot be served at ${socket}: address already in use.`,
  );
  expect(await ask('/healthz')).toMatchObject({ status: 200 });
  await service.move(undefined);
  expect(existsSync(socket)).toBe(false);
});

test('move() changes the address, or keeps the former one if it fails', async () => {
  await make().move(LOOPBACK);
  const former = service.address;
  const file = path.join(directory, 'file');
  writeFileSync(file, '');
  await expect(service.move({ path: file })).rejects.toThrow(`cannot be served at ${file}`);
  expect(service.address).toBe(former);
  await service.move(LOOPBACK);
  expect(service.address).not.toBe(former);
  expect(await ask('/healthz')).toMatchObject({ status: 200 });
  await expect(fetch(`${former}/healthz`)).rejects.toThrow();
});
