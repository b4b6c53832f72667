import { environmentProxy } from './environment-proxy.js';

const ADDRESS = 'proxy.example:3128';
const PROXY = `http://${ADDRESS}`;

const address = (server: string) => new URL(`https://${server}`);

function isDirect(server: string, exceptions: string): boolean {
  return environmentProxy(address(server), { HTTPS_PROXY: PROXY, NO_PROXY: exceptions }) === undefined;
}

test.each([
  ['', 'k8s.example', false],
  ['*', 'k8s.example', true],
  ['other, K8S.example ,', 'k8s.example', true],
  ['example', 'k8s.example', true],
  ['.example', 'k8s.example', true],
  ['*.example', 'k8s.example', true],
  ['k8s.example', 'my-k8s.example', false],
  ['k8s.example', 'a.k8s.example', true],
  ['.k8s.example', 'k8s.example', false],
  ['*.k8s.example', 'k8s.example', false],
  ['k8s.example:6443', 'k8s.example:6443', true],
  ['k8s.example:6443', 'k8s.example', false],
  ['.example:443', 'k8s.example', true],
  [':443', 'k8s.example', false],
  ['10.0.0.0/8', '10.20.30.40:6443', true],
  ['10.20.30.0/24', '10.20.31.40:6443', false],
  ['10.0.0.0/33,10.0.0.0/', '10.0.0.0', false],
  ['10.0.0.0/8', 'k8s.example', false],
  ['10.0.0.1', '10.0.0.1', true],
  ['10.0.0.1', '10.0.0.10', false],
  ['10.0.0.1:6443', '10.0.0.1:6443', true],
  ['10.0.0.1:6443', '10.0.0.1:443', false],
  ['fd00::/8', '[fd12::1]:6443', true],
  ['fd00::/8', '10.0.0.1', false],
  ['fd00:0::1', '[fd00::1]', true],
  ['[fd00::1]:6443', '[fd00::1]:6443', true],
  ['[fd00::1]:6443', '[fd00::1]', false],
  ['10.0.0.0/8', '[::ffff:10.0.0.1]', true],
])('NO_PROXY=%s and %s: direct is %s', (exceptions, server, direct) => {
  expect(isDirect(server, exceptions)).toBe(direct);
});

test.each(['localhost:6443', '127.0.0.9', '[::1]:6443'])('%s is this machine, and needs no proxy', (server) => {
  expect(isDirect(server, '')).toBe(true);
});

test('a name that begins like an address of this machine is another one', () => {
  expect(isDirect('127.example', '')).toBe(false);
});

test('without HTTPS_PROXY there is none; small letters do as well, and an address without http', () => {
  const server = address('k8s.example');
  expect(environmentProxy(server, { NO_PROXY: 'other' })).toBeUndefined();
  expect(environmentProxy(server, { https_proxy: PROXY })).toBe(PROXY);
  expect(environmentProxy(server, { HTTPS_PROXY: ADDRESS })).toBe(PROXY);
  expect(environmentProxy(server, { https_proxy: PROXY, no_proxy: 'example' })).toBeUndefined();
});
