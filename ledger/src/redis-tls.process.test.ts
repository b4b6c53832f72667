import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { RedisLedger } from './redis-ledger.js';
import type { RedisOptions } from './redis-options.js';
import { type Certificates, makeCertificates } from './testing/certificates.js';
import { RedisServer } from './testing/redis-server.js';
import { sessionsOf, snapshot } from './testing/snapshots.js';

let directory: string;
let certificates: Certificates;
let server: RedisServer;

beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'nvidia-virtual-ledger-'));
  certificates = makeCertificates(directory);
  server = await RedisServer.start({
    tls: { caFile: certificates.caFile, ...certificates.server },
  });
});
afterAll(async () => {
  await server.remove();
  rmSync(directory, { recursive: true });
});

async function publishThrough(redis: RedisOptions): Promise<void> {
  const ledger = new RedisLedger({ redis, writer: { node: 'node-1', owner: 'a machine' } });
  ledger.publish(snapshot());
  try {
    await eventually(async () => expect(sessionsOf(...(await ledger.snapshots()))).toHaveLength(6));
  } finally {
    await ledger.close();
    await server.command('FLUSHALL').catch(() => undefined);
  }
}

async function refusalOf(redis: RedisOptions): Promise<string> {
  const ledger = new RedisLedger({ redis });
  try {
    await ledger.snapshots();
    return 'none';
  } catch (error) {
    return (error as Error).message;
  } finally {
    await ledger.close();
  }
}

test('TLS with a private CA', async () => {
  await publishThrough(server.place);
});

test('a server with an unknown CA or another name is not trusted', async () => {
  const { caFile: _, ...untrusting } = server.place;
  expect(await refusalOf(untrusting)).toBe(
    `No TLS connection to Redis at ${server.address}: self-signed certificate in certificate ` +
      `chain. Check that it serves TLS there, and CA, certificate, key and server name.`,
  );
  const url = server.url.replace('127.0.0.1', 'localhost');
  expect(await refusalOf({ ...server.place, url })).toContain(
    "Hostname/IP does not match certificate's altnames",
  );
});

test('TLS to a server without TLS, and no TLS to a server with TLS', async () => {
  const plain = await RedisServer.start({ tcp: true });
  try {
    expect(
      await refusalOf({ url: plain.url.replace('redis:', 'rediss:'), connectTimeout: 100 }),
    ).toContain('no answer for 100 ms. Check that it serves TLS there');
  } finally {
    await plain.remove();
  }
  expect(await refusalOf({ url: server.url.replace('rediss:', 'redis:') })).toBe(
    `Redis at ${server.address} closed the connection. Check that it runs, and whether it ` +
      `expects TLS.`,
  );
});

test('a server that requires a client certificate', async () => {
  const strict = await RedisServer.start({
    tls: { caFile: certificates.caFile, ...certificates.server, clientCertificates: true },
  });
  try {
    await publishThrough({ ...strict.place, ...certificates.client });
    expect(await refusalOf(strict.place)).toContain(
      'certificate required. Check that it serves TLS there',
    );
    expect(
      await refusalOf({ ...strict.place, ...certificates.client, keyFile: certificates.caFile }),
    ).toContain('No TLS connection to Redis');
    expect(
      await refusalOf({ ...strict.place, ...certificates.client, keyFile: '/nonexistent' }),
    ).toBe(
      'keyFile names /nonexistent, which cannot be read: no such file. Check the path and who ' +
        'may read the file.',
    );
  } finally {
    await strict.remove();
  }
});
