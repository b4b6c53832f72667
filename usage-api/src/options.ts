import {
  address,
  duration,
  filePath,
  nodeName,
  redisUrl,
} from '@nvidia-virtual/service/configuration/kinds';
import { option, type Values } from '@nvidia-virtual/service/configuration/option';
import { SHARED_OPTIONS } from '@nvidia-virtual/service/configuration/shared-options';

const { ledger, http, logLevel } = SHARED_OPTIONS;

/** Every option of nvidia-virtual-usage-api: flag, variable and help come from here. */
export const OPTIONS = {
  address: option(address, {
    help: 'address for the API server of Kubernetes',
    default: ':8443',
  }),
  http: option(http.kind, { help: http.details.help, otherwise: 'not served' }),
  kubeconfig: option(filePath, {
    help: 'kubeconfig of the API server of Kubernetes, outside of a pod',
    otherwise: "the pod's service account",
  }),
  namespace: option(nodeName, {
    help: 'the namespace of the Secret and of the Service',
    default: 'nvidia-virtual',
  }),
  service: option(nodeName, {
    help: 'the Service by which the API server reaches this one',
    default: 'nvidia-virtual-usage-api',
  }),
  secret: option(nodeName, {
    help: 'Secret with the serving certificate of all replicas, which create and renew it',
    default: 'nvidia-virtual-usage-api',
  }),
  ledger: {
    ...ledger,
    url: option(redisUrl, {
      help: 'the Redis that holds the ledger',
      default: 'redis://nvidia-virtual-redis:6379',
    }),
    maximumAge: option(duration('1s', '86400s'), {
      help: 'time for which the last figures are shown, with their age, while Redis is away',
      default: '300s',
    }),
  },
  interval: option(duration('500ms', '60s'), {
    help: 'interval of reading figures while clients use them',
    default: '2s',
  }),
  restingInterval: option(duration('1s', '60s'), {
    help: 'interval of reading figures while no client uses them, so that the next request has recent figures',
    default: '15s',
  }),
  logLevel: option(logLevel.kind, { help: logLevel.details.help, default: 'info' }),
};

export type Options = Values<typeof OPTIONS>;
