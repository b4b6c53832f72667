import { readFileSync, writeFileSync } from 'node:fs';
import type { KeyPair } from './authority.js';

interface Cluster {
  readonly server: string;
  readonly authorityFile: string;
}

/** Credentials for the API server: a certificate or a service account's token. */
type Credentials = KeyPair | { readonly token: string };

/** Writes a self-contained kubeconfig (JSON is YAML, too). @returns its path */
export function writeKubeconfig(
  file: string,
  cluster: Cluster,
  credentials: Credentials,
  namespace = 'default',
): string {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [
      {
        name: 'test',
        cluster: {
          server: cluster.server,
          'certificate-authority-data': base64(cluster.authorityFile),
        },
      },
    ],
    users: [{ name: 'user', user: user(credentials) }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'user', namespace } }],
  };
  writeFileSync(file, JSON.stringify(config, undefined, 2), { mode: 0o600 });
  return file;
}

function user(credentials: Credentials): object {
  if ('token' in credentials) return { token: credentials.token };
  return {
    'client-certificate-data': base64(credentials.certificateFile),
    'client-key-data': base64(credentials.keyFile),
  };
}

function base64(file: string): string {
  return readFileSync(file).toString('base64');
}
