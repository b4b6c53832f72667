import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { API_VERSION } from '@nvidia-virtual/usage-api/resources';
import { UsageClient } from './usage-client.js';

const NOBODY = { kind: 'Status', status: 'Failure', code: 503, message: 'service unavailable' };

let server: Server;
let client: UsageClient;
/** One after the other; the last one answers what comes after it, too. */
let answers: ((response: ServerResponse) => void)[];
let asked: URL[];

beforeEach(async () => {
  asked = [];
  server = createServer((request: IncomingMessage, response) => {
    asked.push(new URL(request.url ?? '', 'http://localhost'));
    (answers.length > 1 ? answers.shift() : answers[0])?.(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const target = {
    server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    prepare: async () => ({ tls: {}, headers: {} }),
  };
  client = new UsageClient(target, 10_000, () => {});
});
afterEach(() => {
  client.close();
  server.close();
});

const away = (response: ServerResponse) => void response.writeHead(503).end(JSON.stringify(NOBODY));
const node = (name: string, resourceVersion: string) => ({ metadata: { name, resourceVersion } });
const tell = (type: string, object: object) => (response: ServerResponse) => void response.end(`${JSON.stringify({ type, object })}\n`);

test('who is away for a moment only is asked again', async () => {
  const list = { apiVersion: API_VERSION, kind: 'NodeGpuUsageList', metadata: {}, items: [node('a', '1')] };
  answers = [away, away, (response) => response.end(JSON.stringify(list))];
  expect((await client.nodes({})).items).toHaveLength(1);
  expect(asked).toHaveLength(3);
});

test('who stays away is not asked for ever', async () => {
  answers = [away];
  await expect(client.nodes({})).rejects.toMatchObject({ code: 'API_AWAY' });
  expect(asked.length).toBeGreaterThan(1);
});

test('a watch that a replica ended goes on at another one, from where it was', async () => {
  answers = [tell('BOOKMARK', node('', '7')), away, tell('MODIFIED', node('a', '8'))];
  const changes = client.changes('nodegpuusages', {}, '1');
  expect((await changes.next()).value).toMatchObject({ type: 'MODIFIED', object: node('a', '8') });
  await changes.return(undefined);
  expect(asked.map(({ searchParams }) => searchParams.get('resourceVersion'))).toEqual(['1', '7', '7']);
});
