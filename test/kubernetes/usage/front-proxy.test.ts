import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  authenticate,
  type FrontProxy,
  readFrontProxy,
} from '@nvidia-virtual/usage-api/serve/front-proxy';
import { Authority, type KeyPair } from '../authority.js';
import { run } from './scene.js';

describe('authenticate()', () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'front-proxy-'));
  const authority = new Authority(path.join(directory, 'front-proxy'), 'front-proxy');
  const stranger = new Authority(path.join(directory, 'stranger'), 'front-proxy');
  const client = authority.issue({ commonName: 'front-proxy-client' });
  const data = {
    'requestheader-client-ca-file': readFileSync(authority.certificateFile, 'utf8'),
    'requestheader-allowed-names': '["front-proxy-client"]',
    'requestheader-username-headers': '["X-Remote-User"]',
    'requestheader-uid-headers': '["X-Remote-Uid"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
  };
  let proxy: FrontProxy | undefined;
  let server: Server;

  beforeAll(async () => {
    const { certificateFile, keyFile } = stranger.issue({
      commonName: 'server',
      names: ['IP:127.0.0.1'],
    });
    const pair = {
      cert: readFileSync(certificateFile),
      key: readFileSync(keyFile),
      ca: data['requestheader-client-ca-file'],
    };
    server = createServer(
      { ...pair, requestCert: true, rejectUnauthorized: false },
      (request, response) => {
        try {
          response.end(
            JSON.stringify(
              authenticate(request.socket as TLSSocket, request.headersDistinct, proxy),
            ),
          );
        } catch (error) {
          response.end((error as Error).message);
        }
      },
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => {
    server.close();
    rmSync(directory, { recursive: true });
  });
  beforeEach(() => {
    proxy = readFrontProxy(data);
  });

  const ask = async (pair: KeyPair | undefined, ...headers: string[]) => {
    const certificate = pair ? ['--cert', pair.certificateFile, '--key', pair.keyFile] : [];
    const { port } = server.address() as AddressInfo;
    const all = headers.flatMap((header) => ['-H', header]);
    return (await run('curl', ['-sk', ...certificate, ...all, `https://127.0.0.1:${port}/`]))
      .output;
  };

  test("returns the user of the API server's request, also groups with commas", async () => {
    const headers = [
      'X-Remote-User: anna',
      'X-Remote-Uid: 7',
      'X-Remote-Group: a,b',
      'X-Remote-Group: c',
      'X-Remote-Extra-Scopes%2Fx: y',
    ];
    expect(JSON.parse(await ask(client, ...headers))).toEqual({
      name: 'anna',
      uid: '7',
      groups: ['a,b', 'c', 'system:authenticated'],
      extra: { 'scopes/x': ['y'] },
    });
    expect(JSON.parse(await ask(client, 'X-Remote-User: system:anonymous'))).toMatchObject({
      groups: [],
    });
  });

  test.each<[string, KeyPair | undefined, string]>([
    ['no certificate', undefined, 'the client sent no certificate'],
    [
      'a certificate of another authority',
      stranger.issue({ commonName: 'front-proxy-client' }),
      'is not signed by requestheader-client-ca',
    ],
    [
      'a certificate of another name',
      authority.issue({ commonName: 'webhook-client' }),
      'is of "webhook-client", which',
    ],
  ])('refuses %s', async (_, pair, reason) => {
    const said = await ask(pair, 'X-Remote-User: admin', 'X-Remote-Group: system:masters');
    expect(said).toContain('This API accepts requests only from the Kubernetes API server: ');
    expect(said).toContain(reason);
  });

  test('refuses all before it knows the API server, and after a new CA', async () => {
    proxy = undefined;
    expect(await ask(client, 'X-Remote-User: admin')).toContain(
      'the certificate authority of the API server is not known yet',
    );
    proxy = readFrontProxy({
      ...data,
      'requestheader-client-ca-file': readFileSync(stranger.certificateFile, 'utf8'),
    });
    expect(await ask(client, 'X-Remote-User: admin')).toContain(
      'is not signed by requestheader-client-ca',
    );
  });

  test('refuses a request without a user, and accepts any name if none is configured', async () => {
    expect(await ask(client)).toContain('the request names no user');
    proxy = readFrontProxy({ ...data, 'requestheader-allowed-names': '[]' });
    expect(await ask(authority.issue({ commonName: 'any' }), 'X-Remote-User: anna')).toContain(
      '"name":"anna"',
    );
  });

  test('accepts nothing from an API server without an aggregation layer', () => {
    expect(readFrontProxy({ 'client-ca-file': 'x' })).toBeUndefined();
    expect(readFrontProxy(undefined)).toBeUndefined();
  });
});
