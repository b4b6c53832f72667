import { readFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import path from 'node:path';
import type { ApiCredentials, ApiTarget } from './api-client.js';

const ROOT = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * The API server of the cluster in which this process is a pod, as its service account; undefined outside. Token and CA are read again and
 * again: the kubelet renews them.
 */
export function serviceAccountTarget(environment: NodeJS.ProcessEnv, root = ROOT): ApiTarget | undefined {
  const host = environment['KUBERNETES_SERVICE_HOST'];
  const port = environment['KUBERNETES_SERVICE_PORT'];
  if (host === undefined || port === undefined) return undefined;
  let tls: ApiCredentials['tls'] = {};
  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    prepare: async () => {
      const ca = readFileSync(path.join(root, 'ca.crt'), 'utf8');
      if (tls.ca !== ca) tls = { ca };
      return { tls, headers: { authorization: `Bearer ${readFileSync(path.join(root, 'token'), 'utf8').trim()}` } };
    },
  };
}
