import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface KeyPair {
  readonly certificateFile: string;
  readonly keyFile: string;
}

interface Subject {
  /** The user name in Kubernetes. */
  readonly commonName: string;
  /** Groups of the user. */
  readonly organizations?: readonly string[];
  /** `DNS:name` and `IP:address` of a server. */
  readonly names?: readonly string[];
}

/** A certificate authority for a test, in its own directory. */
export class Authority implements KeyPair {
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly #directory: string;
  #issued = 0;

  constructor(directory: string, name: string) {
    mkdirSync(directory, { recursive: true });
    this.#directory = directory;
    this.certificateFile = path.join(directory, 'ca.pem');
    this.keyFile = path.join(directory, 'ca.key');
    openssl(
      'req',
      '-x509',
      ...newKey(this.keyFile),
      '-subj',
      `/CN=${name}`,
      '-days',
      '2',
      '-out',
      this.certificateFile,
    );
  }

  /** For servers and clients. */
  issue({ commonName, organizations = [], names = [] }: Subject): KeyPair {
    const base = path.join(
      this.#directory,
      `${++this.#issued}-${commonName.replaceAll(/\W+/g, '-')}`,
    );
    const pair = { certificateFile: `${base}.pem`, keyFile: `${base}.key` };
    writeFileSync(`${base}.cnf`, configuration(commonName, organizations, names));
    openssl('req', ...newKey(pair.keyFile), '-config', `${base}.cnf`, '-out', `${base}.csr`);
    const signer = [
      '-CA',
      this.certificateFile,
      '-CAkey',
      this.keyFile,
      '-set_serial',
      String(this.#issued + 1),
    ];
    const extensions = ['-extfile', `${base}.cnf`, '-extensions', 'extensions'];
    openssl(
      'x509',
      '-req',
      '-in',
      `${base}.csr`,
      ...signer,
      ...extensions,
      '-days',
      '2',
      '-out',
      pair.certificateFile,
    );
    return pair;
  }
}

/**
 * A key pair: the API server signs the tokens of service accounts with it. It cannot read PKCS 8,
 * which other openssl commands write.
 */
export function makeKey(file: string): string {
  openssl('ecparam', '-genkey', '-noout', '-name', 'prime256v1', '-out', file);
  return file;
}

/**
 * In a file, because names of Kubernetes users contain colons and slashes, which are separators in
 * `-subj`.
 */
function configuration(
  commonName: string,
  organizations: readonly string[],
  names: readonly string[],
): string {
  const subject = [
    ...organizations.map((name, index) => `${index}.O = ${name}`),
    `CN = ${commonName}`,
  ];
  const extensions = [
    'extendedKeyUsage = serverAuth, clientAuth',
    ...(names.length > 0 ? [`subjectAltName = ${names.join(',')}`] : []),
  ];
  return [
    '[req]',
    'prompt = no',
    'distinguished_name = subject',
    '[subject]',
    ...subject,
    '[extensions]',
    ...extensions,
    '',
  ].join('\n');
}

function newKey(file: string): string[] {
  return ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', file];
}

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}
