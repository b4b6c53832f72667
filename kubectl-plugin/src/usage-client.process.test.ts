import { API_VERSION } from '@nvidia-virtual/usage-api/resources';
import { type Answer, FakeKubectl } from './testing/fake-kubectl.js';
import { UsageClient } from './usage-client.js';

const AWAY = {
  error: 'Error from server (ServiceUnavailable): the server is currently unable to handle it\n',
};

let kubectl: FakeKubectl;
afterEach(() => kubectl.remove());

function clientOf(...answers: readonly Answer[]): UsageClient {
  kubectl = new FakeKubectl(...answers);
  return new UsageClient(kubectl.client(), [0, 0, 0]);
}

const node = (name: string, resourceVersion: string) => ({ metadata: { name, resourceVersion } });
const event = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;
const parameter = (name: string) =>
  kubectl.calls.map(([, , path = '']) => new URL(path, 'http://localhost').searchParams.get(name));
const list = { apiVersion: API_VERSION, kind: 'NodeGpuUsageList', metadata: {} };

test('namespace, name and selectors form the path', async () => {
  const client = clientOf({ output: JSON.stringify({ ...list, items: [] }) });
  await client.pods({ namespace: 'a b', labels: 'app in (x, y)', fields: 'node=n' });
  await client.pod('a', 'p/q');
  await client.nodes({});
  const root = `/apis/${API_VERSION}`;
  expect(kubectl.calls.map(([, , path]) => path)).toEqual([
    `${root}/namespaces/a%20b/podgpuusages?labelSelector=app+in+%28x%2C+y%29` +
      '&fieldSelector=node%3Dn',
    `${root}/namespaces/a/podgpuusages/p%2Fq`,
    `${root}/nodegpuusages`,
  ]);
});

test('a temporary failure is retried', async () => {
  const items = [node('a', '1')];
  const client = clientOf(AWAY, AWAY, { output: JSON.stringify({ ...list, items }) });
  expect((await client.nodes({})).items).toHaveLength(1);
  expect(kubectl.calls).toHaveLength(3);
});

test('retries are limited', async () => {
  await expect(clientOf(AWAY).nodes({})).rejects.toMatchObject({ code: 'API_AWAY' });
  expect(kubectl.calls).toHaveLength(4);
});

test('a watch that a replica ended continues at another one', async () => {
  const client = clientOf(
    { output: event('BOOKMARK', node('', '7')) },
    AWAY,
    {
      output: `${event('MODIFIED', node('a', '8'))}{"type":"MOD`,
      error: 'error: unexpected EOF\n',
    },
    { output: event('DELETED', node('a', '9')) },
  );
  const changes = client.changes('nodegpuusages', {}, '1');
  expect((await changes.next()).value).toMatchObject({ type: 'MODIFIED', object: node('a', '8') });
  expect((await changes.next()).value).toMatchObject({ type: 'DELETED', object: node('a', '9') });
  await changes.return(undefined);
  expect(parameter('resourceVersion')).toEqual(['1', '7', '7', '8']);
  expect(parameter('watch')).toEqual(Array(4).fill('true'));
});

test('a watch ends if its version has expired', async () => {
  const client = clientOf({ error: 'Error from server (Expired): What changed is not known.\n' });
  expect(await client.changes('nodegpuusages', {}, '1').next()).toMatchObject({ done: true });
});
