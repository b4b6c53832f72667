import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import {
  AUTHORITY_LIFETIME,
  BACKDATED,
  issue,
  type KeyPair,
  makeAuthority,
  SERVING_LIFETIME,
} from './authority.js';

/** Content of the Secret, PEM. */
export interface Keyring {
  /** Certificates of all trusted CAs, the newest last. */
  readonly bundle: string;
  /** Private key of the newest CA. */
  readonly authorityKey: string;
  readonly serving: KeyPair;
}

/**
 * Milliseconds between the publication of a new CA and its first signature, for clients to read
 * the new bundle.
 */
const PUBLICATION_TIME = 24 * 3600 * 1000;
/** A certificate is renewed when less than this part of its lifetime is left. */
const RENEWAL_FRACTION = 1 / 3;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** CA certificates of a bundle, the newest last. */
export function certificatesOf(bundle: string): X509Certificate[] {
  return (bundle.match(CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem));
}

/**
 * Creates a missing keyring, and renews an expiring CA or serving certificate.
 * @returns the same object if nothing changes
 */
export async function renew(
  keyring: Keyring | undefined,
  hosts: readonly string[],
  now: Date,
): Promise<Keyring> {
  if (keyring === undefined || !isWhole(keyring)) return makeKeyring(hosts, now);
  const withAuthority = await renewAuthority(keyring, now);
  return renewServing(withAuthority, hosts, now);
}

async function makeKeyring(hosts: readonly string[], now: Date): Promise<Keyring> {
  const authority = await makeAuthority(nameAt(now), now);
  return {
    bundle: authority.certificate,
    authorityKey: authority.key,
    serving: await issue(authority, hosts, now),
  };
}

async function renewAuthority(keyring: Keyring, now: Date): Promise<Keyring> {
  const authorities = certificatesOf(keyring.bundle);
  const alive = authorities.filter((authority) => Date.parse(authority.validTo) > now.getTime());
  const newest = alive.at(-1);
  if (newest !== undefined && leftOf(newest, now) > AUTHORITY_LIFETIME * RENEWAL_FRACTION) {
    return alive.length === authorities.length ? keyring : { ...keyring, bundle: joined(alive) };
  }
  const authority = await makeAuthority(nameAt(now), now);
  return {
    ...keyring,
    bundle: joined([...alive, new X509Certificate(authority.certificate)]),
    authorityKey: authority.key,
  };
}

/** Whether clients that trust the bundle accept the serving certificate now. */
export function isUsable(
  { bundle, serving }: Keyring,
  hosts: readonly string[],
  now: Date,
): boolean {
  const certificate = new X509Certificate(serving.certificate);
  return (
    leftOf(certificate, now) > 0 &&
    hosts.every((host) => covers(certificate, host)) &&
    certificatesOf(bundle).some((one) => signed(one, certificate))
  );
}

async function renewServing(
  keyring: Keyring,
  hosts: readonly string[],
  now: Date,
): Promise<Keyring> {
  const authorities = certificatesOf(keyring.bundle);
  const newest = authorities.at(-1) as X509Certificate;
  const serving = new X509Certificate(keyring.serving.certificate);
  const settled =
    now.getTime() - Date.parse(newest.validFrom) - BACKDATED >= PUBLICATION_TIME ||
    authorities.length === 1;
  const old =
    leftOf(serving, now) <= SERVING_LIFETIME * RENEWAL_FRACTION || !signed(newest, serving);
  if (isUsable(keyring, hosts, now) && !(old && settled)) return keyring;
  const authority = { certificate: newest.toString(), key: keyring.authorityKey };
  return { ...keyring, serving: await issue(authority, hosts, now) };
}

/** A unique name per CA, because clients look CAs up in the bundle by name. */
function nameAt(now: Date): string {
  return `nvidia-virtual ${now.toISOString()}`;
}

function joined(certificates: readonly X509Certificate[]): string {
  return certificates.map((certificate) => certificate.toString()).join('');
}

function leftOf(certificate: X509Certificate, now: Date): number {
  return Date.parse(certificate.validTo) - now.getTime();
}

function covers(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined;
}

function signed(authority: X509Certificate, certificate: X509Certificate): boolean {
  return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
}

/** Validates the keyring: a Secret can contain anything. */
export function isWhole({ bundle, authorityKey, serving }: Keyring): boolean {
  try {
    const authorities = certificatesOf(bundle);
    const belongs = ({ certificate, key }: KeyPair) =>
      new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
    return (
      authorities.length > 0 &&
      belongs({ certificate: String(authorities.at(-1)), key: authorityKey }) &&
      belongs(serving)
    );
  } catch {
    return false;
  }
}
