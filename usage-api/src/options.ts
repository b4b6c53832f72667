import {
  address,
  duration,
  filePath,
  nodeName,
  redisUrl,
} from '@nvidia-virtual/service/configuration/kinds';
import { option, type Values } from '@nvidia-virtual/service/configuration/option';
import { SHARED_OPTIONS } from '@nvidia-virtual/service/configuration/shared-options';

const { certificateDirectory, ledger, http, logLevel } = SHARED_OPTIONS;

/** Options of nvidia-virtual-usage-api. Flags, variables and help are generated from them. */
export const OPTIONS = {
  listen: option(address, {
    help: 'address on which the Kubernetes API server reaches this server',
    default: ':8443',
  }),
  http,
  kubeconfig: option(filePath, {
    help: 'kubeconfig for the Kubernetes API server, needed outside of a pod',
    otherwise: "the pod's service account",
  }),
  namespace: option(nodeName, {
    help: 'namespace of the Secret and of the Service',
    default: 'nvidia-virtual',
  }),
  service: option(nodeName, {
    help: 'Service through which the Kubernetes API server reaches this server',
    default: 'nvidia-virtual-usage-api',
  }),
  secret: option(nodeName, {
    help: 'Secret with the serving certificate of all replicas; they create and renew it',
    default: 'nvidia-virtual-usage-api',
  }),
  certificateDirectory,
  ledger: {
    ...ledger,
    url: option(redisUrl, {
      help: 'URL of the Redis that holds the ledger',
      default: 'redis://nvidia-virtual-redis:6379',
    }),
    maximumAge: option(duration('1s', '86400s'), {
      help: 'how long the last figures are shown, with their age, while Redis is unreachable',
      default: '300s',
    }),
  },
  interval: option(duration('500ms', '60s'), {
    help: 'interval at which figures are read while clients use them',
    default: '2s',
  }),
  restingInterval: option(duration('1s', '60s'), {
    help:
      'interval at which figures are read while no client uses them; ' +
      'it keeps them recent for the next request',
    default: '15s',
  }),
  logLevel,
};

export type Options = Values<typeof OPTIONS>;
