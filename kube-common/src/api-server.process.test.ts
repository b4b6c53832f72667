import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { KubeConfig } from '@kubernetes/client-node';
import { ApiServer } from './api-server.js';

const TIMEOUT = 100;
const asked = { path: '/api/v1/pods', timeout: TIMEOUT };

let server: Server;
let api: ApiServer;
let answer: (response: ServerResponse) => void;

beforeEach(async () => {
  server = createServer((_, response) => answer(response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    {
      name: 'any',
      server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      skipTLSVerify: true,
    },
    { name: 'any' },
  );
  api = new ApiServer(config);
});
afterEach(() => {
  api.close();
  server.closeAllConnections();
  server.close();
});

test('who takes a connection and never answers is given up, for a watch as for any request', async () => {
  answer = () => {};
  await expect(api.request(asked)).rejects.toThrow('no answer came within 0.1 s');
  await expect(api.stream(asked, new AbortController().signal)).rejects.toThrow(
    'no answer came within 0.1 s',
  );
});

test('a watch that has begun goes on for longer than its beginning may take', async () => {
  answer = (response) => {
    response.flushHeaders();
    setTimeout(() => response.end('later'), 3 * TIMEOUT);
  };
  expect(await text(await api.stream(asked, new AbortController().signal))).toBe('later');
});
