import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY = 24 * 3600 * 1000;
/** Milliseconds by which certificates are backdated for clients whose clocks are behind. */
export const BACKDATED = 3600 * 1000;
export const AUTHORITY_LIFETIME = 365 * DAY;
export const SERVING_LIFETIME = 90 * DAY;

/** A certificate and its private key, PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** Creates a CA that signs only our serving certificates. */
export async function makeAuthority(commonName: string, now: Date): Promise<KeyPair> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [commonName] }],
    keys,
    signingAlgorithm: ALGORITHM,
    ...validity(now, AUTHORITY_LIFETIME),
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  });
  return { certificate: certificate.toString('pem'), key: await exportKey(keys.privateKey) };
}

/** Issues a serving certificate for these host names and addresses. */
export async function issue(
  authority: KeyPair,
  hosts: readonly string[],
  now: Date,
): Promise<KeyPair> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.create({
    subject: [{ CN: [(hosts[0] ?? '').slice(0, 64)] }],
    issuer: new X509Certificate(authority.certificate).subjectName,
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.key),
    signingAlgorithm: ALGORITHM,
    ...validity(now, SERVING_LIFETIME),
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(
        hosts.map((host) => ({ type: isIP(host) ? 'ip' : 'dns', value: host })),
      ),
    ],
  });
  return { certificate: certificate.toString('pem'), key: await exportKey(keys.privateKey) };
}

function validity(now: Date, life: number) {
  return {
    notBefore: new Date(now.getTime() - BACKDATED),
    notAfter: new Date(now.getTime() + life),
  };
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  return PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}

async function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(pem), ALGORITHM, false, [
    'sign',
  ]);
}
