import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { json } from 'node:stream/consumers';
import type { Inventory } from '@nvidia-virtual/kube-common/assignment';
import { INVENTORY_ANNOTATION } from '@nvidia-virtual/kube-common/names';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { pino } from 'pino';
import { NodeReporter } from './node-reporter.js';

const NOTHING: Inventory = { version: 1, gpus: [] };
const GPU = { uuid: 'GPU-1', name: 'GPU', memory: 8, slotMemory: 4, slots: 2, healthy: true };
const ONE_GPU: Inventory = { version: 1, gpus: [{ ...GPU, mode: 'exclusive' }] };

let directory: string;
let server: Server;
let reporter: NodeReporter;
/** Called before the API server answers. */
let onRequest: (method: string, path: string) => void;
let annotations: Record<string, string>;
/** What the API server's cache has of them, if it is behind. */
let cached: typeof annotations | undefined;

beforeEach(async () => {
  annotations = {};
  cached = undefined;
  onRequest = () => {};
  server = createServer(async (request, response) => {
    const { method = '', url = '' } = request;
    if (method === 'PATCH') {
      const { metadata } = (await json(request)) as {
        metadata?: { annotations: typeof annotations };
      };
      Object.assign(annotations, metadata?.annotations);
    }
    onRequest(method, url);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ metadata: { annotations: cached ?? annotations } }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  directory = mkdtempSync(path.join(tmpdir(), 'node-reporter-'));
  reporter = new NodeReporter({
    node: 'node-1',
    kubeconfig: writeKubeconfig((server.address() as AddressInfo).port),
    logger: pino({ enabled: false }),
  });
});
afterEach(() => {
  reporter.end();
  server.closeAllConnections();
  server.close();
  rmSync(directory, { recursive: true });
});

function writeKubeconfig(port: number): string {
  const file = path.join(directory, 'config');
  const config = {
    clusters: [
      {
        name: 'one',
        cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true },
      },
    ],
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
    users: [{ name: 'one', user: {} }],
    'current-context': 'one',
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

test('an inventory that changes during a report is written after it', async () => {
  onRequest = (method, url) => {
    if (method === 'PATCH' && url.includes('/status')) reporter.report(ONE_GPU, [], []);
  };
  reporter.report(NOTHING, [], []);
  await eventually(() =>
    expect(JSON.parse(annotations[INVENTORY_ANNOTATION] ?? 'null')).toEqual(ONE_GPU),
  );
});

test('an inventory that changes back is written, even if the cache is behind', async () => {
  const isWritten = (inventory: Inventory) =>
    eventually(() =>
      expect(JSON.parse(annotations[INVENTORY_ANNOTATION] ?? 'null')).toEqual(inventory),
    );
  for (const inventory of [ONE_GPU, NOTHING, ONE_GPU]) {
    reporter.report(inventory, [], []);
    await isWritten(inventory);
    cached ??= { ...annotations };
  }
});
