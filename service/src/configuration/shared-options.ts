import { address, choice, filePath, nodeName, redisUrl, userName } from './kinds.js';
import { option } from './option.js';

/** Options that several services have. */
export const SHARED_OPTIONS = {
  node: option(nodeName, {
    help: 'name of this node in the ledger, metrics and logs',
    otherwise: "the host's name",
  }),
  ledger: {
    url: option(redisUrl, {
      help: 'URL of the Redis that holds the ledger',
      otherwise: 'no ledger',
    }),
    username: option(userName, {
      help: 'Redis user',
      otherwise: "Redis' default user",
      needs: [{ key: 'ledger.url' }, { key: 'ledger.passwordFile' }],
    }),
    passwordFile: option(filePath, {
      help: 'file with the Redis password; read again for each connection',
      otherwise: 'no password',
      needs: [{ key: 'ledger.url' }],
    }),
    tls: {
      ca: option(filePath, {
        help: 'CA certificates for the Redis server (PEM)',
        otherwise: 'the CAs that Node.js trusts',
        needs: [{ key: 'ledger.url', prefix: 'rediss://' }],
      }),
      cert: option(filePath, {
        help: 'client certificate (PEM)',
        otherwise: 'none',
        needs: [{ key: 'ledger.url', prefix: 'rediss://' }, { key: 'ledger.tls.key' }],
      }),
      key: option(filePath, {
        help: 'private key of the client certificate (PEM)',
        otherwise: 'none',
        needs: [{ key: 'ledger.tls.cert' }],
      }),
    },
  },
  certificateDirectory: option(filePath, {
    help:
      'directory with the serving certificate as tls.crt and tls.key, which another program ' +
      'such as cert-manager renews',
    otherwise: 'the replicas create and renew a certificate in a Secret',
  }),
  http: option(address, {
    help:
      'address of /metrics, /healthz and /readyz; without authentication, so use a ' +
      'private address',
    otherwise: 'not served',
    reloadable: true,
  }),
  logLevel: option(choice('trace', 'debug', 'info', 'warn', 'error', 'fatal'), {
    help: 'minimum log level',
    default: 'info',
    reloadable: true,
  }),
};
