import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { explain, explainKubeconfig } from '../errors.js';
import { ApiClient } from './api-client.js';
import type { ClusterEntry, Kubeconfig, UserEntry } from './kubeconfig.js';
import { selectTarget } from './kubeconfig-target.js';

const LOOPBACK = '[::1]';
const SUBJECT = { server: `https://${LOOPBACK}:6443`, resource: 'podgpuusages' } as const;

function select(cluster: ClusterEntry, user: UserEntry = {}, environment: NodeJS.ProcessEnv = {}) {
  const config: Kubeconfig = {
    currentContext: 'one',
    clusters: new Map([['one', cluster]]),
    users: new Map([['one', user]]),
    contexts: new Map([['one', { cluster: 'one', user: 'one' }]]),
    files: ['config'],
  };
  return selectTarget(config, {}, environment).target;
}

function refusal(step: () => unknown): unknown {
  try {
    return step();
  } catch (error) {
    return explainKubeconfig(error);
  }
}

test.each([
  [{ 'proxy-url': 'socks5://anna:secret@proxy:1080' }, {}, 'socks5://proxy:1080'],
  [{ 'proxy-url': 'proxy:3128' }, {}, 'proxy:3128'],
  [{}, { HTTPS_PROXY: 'socks5h://proxy' }, 'socks5h://proxy'],
])('a proxy of a kind that is not known is refused: %j %j', (cluster, environment, shown) => {
  const refused = refusal(() => select({ server: 'https://k8s.svc', ...cluster }, {}, environment));
  expect(refused).toMatchObject({
    code: 'PROXY_KIND',
    message: expect.stringContaining(`The proxy ${shown} for the cluster https://k8s.svc`),
  });
});

test('kubectl proxy beside it is no matter of a proxy', () => {
  expect(select({ server: 'http://127.0.0.1:8001', 'proxy-url': 'socks5://proxy' }).proxy).toBeUndefined();
});

test('an IPv6 address is written for a proxy as it has to be', async () => {
  const asked: (string | undefined)[] = [];
  const proxy = createServer().on('connect', ({ url }, client) => {
    asked.push(url);
    client.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const client = new ApiClient(select({ server: SUBJECT.server, 'proxy-url': url }));
  const failure = await client.json('/version').catch((error: unknown) => explain(error, SUBJECT));
  expect(failure).toMatchObject({ code: 'UNREACHABLE', message: expect.stringContaining('answered 502') });
  expect(asked).toEqual(['[::1]:6443']);
  proxy.close();
});

test('a program for credentials is told of the cluster what kubectl tells it: no file, but what is in it', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'target-'));
  try {
    const authority = path.join(directory, 'ca.crt');
    writeFileSync(authority, 'AUTHORITY');
    const program = `process.stdout.write(JSON.stringify({ status: { token: process.env.KUBERNETES_EXEC_INFO } }))`;
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: process.execPath,
      args: ['-e', program],
      provideClusterInfo: true,
    };
    const cluster = { server: 'https://k8s.svc', 'proxy-url': 'http://proxy.svc:3128' };
    const { headers } = await select({ ...cluster, 'certificate-authority': authority }, { exec }).prepare();
    const information = JSON.parse(String(headers['authorization']).replace('Bearer ', '')) as { spec: { cluster: object } };
    expect(information.spec.cluster).toEqual({
      ...cluster,
      'certificate-authority-data': Buffer.from('AUTHORITY').toString('base64'),
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
