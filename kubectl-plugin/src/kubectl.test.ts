import { KubectlError, PluginError } from './errors.js';
import { Kubectl } from './kubectl.js';
import { type Answer, FakeKubectl } from './testing/fake-kubectl.js';

let kubectl: FakeKubectl;
afterEach(() => kubectl.remove());

function clientOf(...answers: readonly Answer[]): Kubectl {
  kubectl = new FakeKubectl(...answers);
  return kubectl.client(['--context=a b; $(c)', '--as-group=d']);
}

test('passes the connection flags on unchanged', async () => {
  expect(await clientOf({ output: '{}' }).get('/p?q=1')).toBe('{}');
  expect(kubectl.calls).toEqual([
    ['get', '--raw', '/p?q=1', '--request-timeout=5s', '--context=a b; $(c)', '--as-group=d'],
  ]);
});

test('a failure throws the last error and prints earlier output', async () => {
  const client = clientOf({ warning: 'Open https://localhost\n', error: 'error: no\nmore\n' });
  await expect(client.get('/p')).rejects.toEqual(new KubectlError('error: no\nmore'));
  expect(kubectl.said).toBe('Open https://localhost\n');
});

test('a warning is printed once', async () => {
  const client = clientOf({ output: '{}', warning: 'Warning: old\n' });
  await client.get('/p');
  await client.get('/p');
  expect(kubectl.said).toBe('Warning: old\n');
});

test('a watch has no timeout, and an incomplete last line is dropped', async () => {
  const lines: string[] = [];
  const client = clientOf({ output: '{"a":"\u2028"}\n{}\n{' });
  for await (const line of client.lines('/p')) lines.push(line);
  expect(lines).toEqual(['{"a":"\u2028"}', '{}']);
  expect(kubectl.calls[0]?.slice(0, 3)).toEqual(['get', '--raw', '/p']);
  expect(kubectl.calls[0]).not.toContainEqual(expect.stringContaining('--request-timeout'));
});

test('the namespace is that of the context, else "default"', async () => {
  const missing = { error: 'error: current-context must exist in order to minify\n' };
  const client = clientOf({ output: 'team-a' }, { output: '' }, missing);
  expect([await client.namespace(), await client.namespace(), await client.namespace()]).toEqual([
    'team-a',
    'default',
    'default',
  ]);
});

test('names of the kubeconfig', async () => {
  expect(await clientOf({ output: 'a\nb\n' }).names('contexts')).toEqual(['a', 'b']);
});

test('without kubectl, an error says so', async () => {
  clientOf();
  const environment = { PATH: '/absent' };
  const client = new Kubectl({ connection: [], environment, requestTimeout: '5s', say: () => {} });
  await expect(client.get('/p')).rejects.toEqual(new PluginError('KUBECTL_MISSING'));
});
