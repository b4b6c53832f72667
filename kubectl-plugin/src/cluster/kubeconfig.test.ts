import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ApiClient } from './api-client.js';
import { podKubeconfig, readKubeconfig } from './kubeconfig.js';
import { type KubeconfigOverrides, selectTarget } from './kubeconfig-target.js';

const FAR = 'cluster.example:6443';
const ADDRESS = '[fd00::1]';
const LOGIN = 'a:b@';
const PROXY = 'http://127.0.0.1:1';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'kubeconfig-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

function write(name: string, content: object | string): string {
  const file = path.join(directory, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
}

function config(
  server: string,
  { user = {}, cluster = {}, namespace = 'ns' }: { user?: object; cluster?: object; namespace?: string } = {},
) {
  return {
    'current-context': 'c',
    clusters: [{ name: 'k', cluster: { server, ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u', namespace } }],
  };
}

async function prepared(content: object, overrides: KubeconfigOverrides = {}, environment: NodeJS.ProcessEnv = {}) {
  const { target, namespace } = selectTarget(readKubeconfig(write('config', content), {}), overrides, environment);
  return { target, namespace, ...(await target.prepare()) };
}

describe('readKubeconfig()', () => {
  test('of several files the first that names something wins, and missing ones are none', () => {
    const [first, second] = [write('1', { clusters: config('https://localhost:1').clusters }), write('2', config('https://localhost:2'))];
    const read = readKubeconfig(undefined, { KUBECONFIG: ['/absent', first, second].join(path.delimiter) });
    expect(read.clusters.get('k')?.server).toBe('https://localhost:1');
    expect([read.currentContext, read.files]).toEqual(['c', [first, second]]);
  });

  test('paths count from their file, and a command with a slash too', () => {
    const user = { 'client-certificate': 'a.pem', tokenFile: '/t', exec: { command: './login' } };
    const file = write('sub/config', config('https://localhost', { user, cluster: { 'certificate-authority': '../ca.pem' } }));
    const { clusters, users } = readKubeconfig(file, {});
    expect(clusters.get('k')?.['certificate-authority']).toBe(path.join(directory, 'ca.pem'));
    expect(users.get('u')).toMatchObject({
      ...{ 'client-certificate': path.join(directory, 'sub/a.pem'), tokenFile: '/t', exec: { command: path.join(directory, 'sub/login') } },
    });
  });

  test('the standard file is in HOME', () => {
    write('.kube/config', config('https://localhost:3'));
    expect(readKubeconfig(undefined, { HOME: directory }).clusters.get('k')?.server).toBe('https://localhost:3');
    expect(readKubeconfig(undefined, { HOME: '/absent' }).files).toEqual([]);
  });

  test.each([
    ['a: [', /config: /],
    ['text', /it holds no kubeconfig/],
    ['clusters: 5', /"clusters" is no list/],
  ])('%j is refused', (text, reason) => {
    expect(() => readKubeconfig(write('config', text), {})).toThrow(reason);
  });

  test('a file that is named must exist', () => {
    expect(() => readKubeconfig('/absent', {})).toThrow('/absent: no such file');
  });
});

describe('selectTarget()', () => {
  test('tokens, passwords and impersonation become headers', async () => {
    const token = write('token', 'secret\n');
    expect((await prepared(config('https://localhost', { user: { tokenFile: token, as: 'a', 'as-groups': ['g', 'h'] } }))).headers).toEqual(
      {
        ...{ authorization: 'Bearer secret', 'impersonate-user': 'a', 'impersonate-group': ['g', 'h'] },
      },
    );
    const basic = await prepared(config('https://localhost', { user: { username: 'a', password: 'b' } }), { as: 'c', asUid: '7' });
    expect(basic.headers).toEqual({ authorization: 'Basic YTpi', 'impersonate-user': 'c', 'impersonate-uid': '7' });
  });

  test('what the command line says wins', async () => {
    const { target, headers, tls } = await prepared(config('https://localhost', { user: { token: 'old' } }), {
      ...{ server: 'https://localhost:4', token: 'new', insecureSkipTlsVerify: true, tlsServerName: 'z' },
    });
    expect([target.server, headers, tls]).toEqual([
      'https://localhost:4',
      { authorization: 'Bearer new' },
      { rejectUnauthorized: false, servername: 'z' },
    ]);
  });

  test.each([
    [{ context: 'x' }, 'no context "x"'],
    [{ cluster: 'x' }, 'no cluster "x"'],
    [{ user: 'x' }, 'no user "x"'],
    [{ server: 'x' }, '"x" is no address of a server'],
  ])('%j is nowhere', async (overrides, message) => {
    await expect(prepared(config('https://localhost'), overrides)).rejects.toThrow(message);
  });

  test('nothing is chosen in an empty kubeconfig', async () => {
    await expect(prepared({})).rejects.toThrow('no cluster is chosen');
  });

  test.each([
    [{ HTTPS_PROXY: PROXY }, `https://${FAR}`, PROXY],
    [{ HTTPS_PROXY: PROXY, NO_PROXY: 'other,.example' }, `https://${FAR}`, undefined],
    [{ HTTPS_PROXY: PROXY }, 'https://127.0.0.1:6443', undefined],
    [{}, `https://${FAR}`, undefined],
  ])('the proxy of %j for %s', async (environment, server, proxy) => {
    expect((await prepared(config(server), {}, environment)).target.proxy).toBe(proxy);
  });
});

test('a pod reaches its own cluster without a kubeconfig', () => {
  write('token', 'x');
  write('namespace', 'team\n');
  const config = podKubeconfig({ KUBERNETES_SERVICE_HOST: ADDRESS.slice(1, -1), KUBERNETES_SERVICE_PORT: '443' }, directory);
  expect(config?.clusters.get('in-cluster')?.server).toBe(`https://${ADDRESS}:443`);
  expect(config?.contexts.get('in-cluster')?.namespace).toBe('team');
  expect(podKubeconfig({}, directory)).toBeUndefined();
});

test('a connection goes through the proxy that is asked for, and a refusal of the proxy is told', async () => {
  const asked: string[] = [];
  const proxy = createServer().on('connect', ({ url = '', headers }, socket) => {
    asked.push(`${url} ${headers['proxy-authorization']}`);
    socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port } = proxy.address() as AddressInfo;
  const { target } = await prepared(config(`https://${FAR}`, { cluster: { 'proxy-url': `http://${LOGIN}127.0.0.1:${port}` } }));
  await expect(new ApiClient(target).json('/apis')).rejects.toThrow(`the proxy 127.0.0.1:${port} answered 407`);
  expect(asked).toEqual([`${FAR} Basic YTpi`]);
  proxy.close();
});
