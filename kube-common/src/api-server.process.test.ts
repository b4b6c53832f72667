import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { jest } from '@jest/globals';
import { KubeConfig } from '@kubernetes/client-node';
import { ApiServer, LongAnswerError } from './api-server.js';

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

test('requests and watches time out if the server accepts but does not answer', async () => {
  answer = () => {};
  await expect(api.request(asked)).rejects.toThrow('no answer came within 0.1 s');
  await expect(api.stream(asked, new AbortController().signal)).rejects.toThrow(
    'no answer came within 0.1 s',
  );
});

test('an answer that is longer than allowed is not read to its end', async () => {
  let written = 0;
  answer = (response) => {
    response.on('drain', () => {
      for (let part = 0; part < 16; part++) response.write(Buffer.alloc(65_536));
      written++;
    });
    response.write(Buffer.alloc(10_000_000));
  };
  const request = api.request({ ...asked, timeout: 10_000, maximumBytes: 1_000_000 });
  await expect(request).rejects.toThrow(LongAnswerError);
  expect(written).toBeLessThan(2);
});

test('a started watch may outlast the timeout for its start', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] });
  try {
    let end = () => {};
    answer = (response) => {
      response.flushHeaders();
      end = () => void response.end('later');
    };
    const stream = await api.stream(asked, new AbortController().signal);
    jest.advanceTimersByTime(3 * TIMEOUT);
    end();
    expect(await text(stream)).toBe('later');
  } finally {
    jest.useRealTimers();
  }
});

test('a kubeconfig that is not YAML is named in the error', () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'kubeconfig-'));
  const file = path.join(directory, 'config');
  writeFileSync(file, '{');
  try {
    expect(() => ApiServer.load(file)).toThrow(
      /\/config cannot be read as a kubeconfig: .*\. Repair it, or name another file\.$/,
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
});
