import { X509Certificate } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:tls';
import { certificatesOf, type Keyring, renew } from './keyring.js';

const HOSTS = ['webhook.example.svc', '127.0.0.1'];
const DAY = 24 * 3600 * 1000;
const START = Date.now();

function at(days: number): Date {
  return new Date(START + days * DAY);
}

/** Whether a client that trusts this bundle accepts the serving certificate. */
function isTrusted(keyring: Keyring, bundle: string): boolean {
  const serving = new X509Certificate(keyring.serving.certificate);
  return certificatesOf(bundle).some(
    (authority) => serving.checkIssued(authority) && serving.verify(authority.publicKey),
  );
}

test('renew() creates a CA and a certificate for all hosts', async () => {
  const keyring = await renew(undefined, HOSTS, at(0));
  const serving = new X509Certificate(keyring.serving.certificate);
  expect([
    serving.checkHost('webhook.example.svc'),
    serving.checkIP('127.0.0.1'),
    serving.checkHost('other.example.svc'),
  ]).toEqual(['webhook.example.svc', '127.0.0.1', undefined]);
  expect(certificatesOf(keyring.bundle).map(({ ca }) => ca)).toEqual([true]);
  expect(isTrusted(keyring, keyring.bundle)).toBe(true);
});

test('renew() changes nothing before it is time', async () => {
  const keyring = await renew(undefined, HOSTS, at(0));
  expect(await renew(keyring, HOSTS, at(59))).toBe(keyring);
});

test('renew() renews the certificate 30 days before its end, with the same CA', async () => {
  const keyring = await renew(undefined, HOSTS, at(0));
  const later = await renew(keyring, HOSTS, at(61));
  expect([later.bundle, later.serving.certificate === keyring.serving.certificate]).toEqual([
    keyring.bundle,
    false,
  ]);
  expect(isTrusted(later, keyring.bundle)).toBe(true);
});

test('renew() issues a new certificate for added hosts', async () => {
  const keyring = await renew(undefined, HOSTS, at(0));
  const later = await renew(keyring, [...HOSTS, 'new.example.svc'], at(1));
  expect(new X509Certificate(later.serving.certificate).checkHost('new.example.svc')).toBe(
    'new.example.svc',
  );
});

test('clients trust the certificate always: a new CA is published, then signs', async () => {
  let keyring = await renew(undefined, HOSTS, at(0));
  /** The bundle as read by a client a day ago. */
  let known = keyring.bundle;
  let authorities = 1;
  for (let day = 1; day < 3 * 365; day++) {
    const now = at(day);
    const next = await renew(keyring, HOSTS, now);
    const serving = new X509Certificate(next.serving.certificate);
    expect([
      isTrusted(next, known),
      Date.parse(serving.validTo) > now.getTime() + 29 * DAY,
    ]).toEqual([true, true]);
    if (next.bundle !== keyring.bundle) authorities++;
    known = next.bundle;
    keyring = next;
  }
  expect(authorities).toBeGreaterThan(3);
  expect(certificatesOf(keyring.bundle).length).toBeLessThanOrEqual(2);
});

test.each<[string, (keyring: Keyring) => Keyring]>([
  ['an empty bundle', (keyring) => ({ ...keyring, bundle: '' })],
  [
    'garbage for a certificate',
    (keyring) => ({ ...keyring, serving: { ...keyring.serving, certificate: 'x' } }),
  ],
  ['no key of the CA', (keyring) => ({ ...keyring, authorityKey: '' })],
])('renew() creates a new keyring for %s', async (_, spoil) => {
  const keyring = await renew(spoil(await renew(undefined, HOSTS, at(0))), HOSTS, at(0));
  expect(isTrusted(keyring, keyring.bundle)).toBe(true);
});

test('a TLS client that trusts the bundle accepts the certificate', async () => {
  const { serving, bundle } = await renew(undefined, HOSTS, at(0));
  const server = createServer({ cert: serving.certificate, key: serving.key }, (socket) =>
    socket.end('x'),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = connect({
    port: (server.address() as AddressInfo).port,
    host: '127.0.0.1',
    ca: bundle,
  });
  await new Promise((resolve, reject) => socket.on('secureConnect', resolve).on('error', reject));
  expect(socket.authorized).toBe(true);
  socket.destroy();
  server.close();
});

test.each([
  [
    'serving key',
    (keyring: Keyring, other: Keyring) => ({
      ...keyring,
      serving: { ...keyring.serving, key: other.serving.key },
    }),
  ],
  [
    'key of the CA',
    (keyring: Keyring, other: Keyring) => ({ ...keyring, authorityKey: other.authorityKey }),
  ],
])('renew() creates a new keyring if the %s belongs to another certificate', async (_, mix) => {
  const mixed = mix(await renew(undefined, HOSTS, at(0)), await renew(undefined, HOSTS, at(0)));
  const mended = await renew(mixed, HOSTS, at(1));
  expect(mended.bundle).not.toBe(mixed.bundle);
  expect(isTrusted(mended, mended.bundle)).toBe(true);
});
