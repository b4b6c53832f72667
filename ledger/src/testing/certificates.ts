import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';

interface Certificate {
  readonly certificateFile: string;
  readonly keyFile: string;
}

export interface Certificates {
  readonly caFile: string;
  /** Valid for the name `redis.test` and for 127.0.0.1. */
  readonly server: Certificate;
  readonly client: Certificate;
}

/** Creates a CA and certificates with openssl in the test's directory. */
export function makeCertificates(directory: string): Certificates {
  const ca = {
    certificateFile: path.join(directory, 'ca.pem'),
    keyFile: path.join(directory, 'ca.key'),
  };
  openssl(
    'req',
    '-x509',
    ...newKey(ca.keyFile),
    '-subj',
    '/CN=CA of a test',
    '-days',
    '1',
    '-out',
    ca.certificateFile,
  );
  return {
    caFile: ca.certificateFile,
    server: sign(directory, 'server', 'subjectAltName=DNS:redis.test,IP:127.0.0.1', ca),
    client: sign(directory, 'client', 'extendedKeyUsage=clientAuth', ca),
  };
}

function sign(directory: string, name: string, extension: string, ca: Certificate): Certificate {
  const [certificateFile, keyFile, request, extensions] = ['pem', 'key', 'csr', 'ext'].map((end) =>
    path.join(directory, `${name}.${end}`),
  ) as [string, string, string, string];
  writeFileSync(extensions, extension);
  openssl('req', ...newKey(keyFile), '-subj', `/CN=${name}`, '-out', request);
  const signer = ['-CA', ca.certificateFile, '-CAkey', ca.keyFile, '-CAcreateserial'];
  openssl(
    'x509',
    '-req',
    '-in',
    request,
    ...signer,
    '-days',
    '1',
    '-extfile',
    extensions,
    '-out',
    certificateFile,
  );
  return { certificateFile, keyFile };
}

function newKey(file: string): string[] {
  return ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', file];
}

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}
