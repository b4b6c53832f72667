import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type RequestOptions, request, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { issue, makeAuthority } from '@nvidia-virtual/kube-common/certificates/authority';
import { type Certificates, makeCertificates } from '@nvidia-virtual/ledger/testing/certificates';
import { webhookServer } from './server.js';

let directory: string;
let server: Server | undefined;

beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'webhook-'));
});
afterEach(() => {
  server?.close();
  server?.closeAllConnections();
  rmSync(directory, { recursive: true });
});

/** Resolves to the status of the answer. */
function ask(port: number, options: RequestOptions = {}): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(
      { host: '127.0.0.1', port, rejectUnauthorized: false, agent: false, ...options },
      (response) => {
        response.resume();
        resolve(response.statusCode);
      },
    );
    asked.on('error', reject).end();
  });
}

async function serve(clientAuthority: string | undefined): Promise<number> {
  server = webhookServer(clientAuthority, (_, response) => response.end());
  const { certificate: cert, key } = await issue(
    await makeAuthority('serving', new Date()),
    ['127.0.0.1'],
    new Date(),
  );
  server.setSecureContext({ cert, key });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

test("only a client CA's certificates pass, also after a renewal", async () => {
  const made = ['ours', 'other'].map((name) => {
    mkdirSync(path.join(directory, name));
    return makeCertificates(path.join(directory, name));
  });
  const [ours, other] = made as [Certificates, Certificates];
  const port = await serve(ours.caFile);
  const client = ({ client: { certificateFile, keyFile } }: Certificates) => ({
    cert: readFileSync(certificateFile),
    key: readFileSync(keyFile),
  });
  expect(await ask(port, client(ours))).toBe(200);
  await expect(ask(port)).rejects.toThrow();
  await expect(ask(port, client(other))).rejects.toThrow();
});

test('without a client CA, every client is accepted', async () => {
  expect(await ask(await serve(undefined))).toBe(200);
});

test('a file without a certificate is refused with a message', () => {
  const file = path.join(directory, 'ca.crt');
  expect(() => webhookServer(file, () => {})).toThrow(
    `--client-authority ${file} cannot be used: no such file or directory`,
  );
  writeFileSync(file, 'nonsense');
  expect(() => webhookServer(file, () => {})).toThrow(
    `--client-authority ${file} cannot be used: `,
  );
});
