import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect } from 'node:tls';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { pino } from 'pino';
import { issue, makeAuthority } from './certificates/authority.js';
import { ServingCertificate } from './certificates.js';

let directory: string;
let server: Server;
let certificate: ServingCertificate;

beforeEach(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'certificate-'));
  server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  certificate = new ServingCertificate({
    own: undefined as never, // must not be used
    directory,
    logger: pino({ level: 'silent' }),
    interval: 10,
  });
});
afterEach(() => {
  certificate.stop();
  server.close();
  rmSync(directory, { recursive: true });
});

/** Writes a certificate as cert-manager does. @returns its authority */
async function renew(): Promise<string> {
  const authority = await makeAuthority('issuer', new Date());
  const pair = await issue(authority, ['127.0.0.1'], new Date());
  writeFileSync(path.join(directory, 'tls.key'), pair.key);
  writeFileSync(path.join(directory, 'tls.crt'), pair.certificate);
  return authority.certificate;
}

function isTrusted(ca: string): Promise<boolean> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', ca }, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

test('a certificate in a directory is served, and a renewed one too', async () => {
  const first = await renew();
  await certificate.serve(server);
  expect([certificate.condition(), await isTrusted(first)]).toEqual([undefined, true]);
  const second = await renew();
  await until(() => isTrusted(second), 'the renewed certificate is served');
});

test('a missing file is named until it is there', async () => {
  const serving = certificate.serve(server);
  await until(
    () => certificate.condition()?.startsWith(path.join(directory, 'tls.crt')) ?? false,
    'the file is missed',
  );
  const authority = await renew();
  await serving;
  expect([certificate.condition(), await isTrusted(authority)]).toEqual([undefined, true]);
});
