import { address, duration, filePath, many, nodeName, redisUrl } from '@nvidia-virtual/gpu-proxy/configuration/kinds';
import { option, type Values } from '@nvidia-virtual/gpu-proxy/configuration/option';
import { NODE_OPTIONS } from '@nvidia-virtual/gpu-proxy/configuration/schema';

const { ledger, http, logLevel } = NODE_OPTIONS;

/** Every option of nvidia-virtual-usage-api: flag, variable and help come from here. */
export const OPTIONS = {
  address: option(address, { help: 'where the API server of Kubernetes finds this one', default: ':8443' }),
  http: option(http.kind, { help: http.details.help, otherwise: 'not served' }),
  kubeconfig: option(filePath, {
    help: 'how the API server of Kubernetes is reached, outside of a pod',
    otherwise: "the pod's service account",
  }),
  namespace: option(nodeName, { help: 'the namespace of the Secret and of the Service', default: 'nvidia-virtual' }),
  service: option(nodeName, { help: 'the Service by which the API server reaches this one', default: 'nvidia-virtual-usage-api' }),
  secret: option(nodeName, {
    help: 'the Secret in which all replicas keep the serving certificate; it is made and renewed by them',
    default: 'nvidia-virtual-usage-api',
  }),
  hosts: option(many(nodeName), {
    help: 'further names by which this server is reached',
    otherwise: 'those of the Service',
  }),
  ledger: {
    ...ledger,
    url: option(redisUrl, { help: 'the Redis that holds the ledger', default: 'redis://nvidia-virtual-redis:6379' }),
    maximumAge: option(duration('1s', '86400s'), {
      help: 'for how long the figures that were read last are shown, with their age, while Redis is away',
      default: '300s',
    }),
  },
  interval: option(duration('500ms', '60s'), {
    help: 'how often figures are read while somebody looks at them',
    default: '2s',
  }),
  restingInterval: option(duration('1s', '60s'), {
    help: 'how often they are read while nobody does, so that the first who asks learns of the time used lately',
    default: '15s',
  }),
  logLevel: option(logLevel.kind, { help: logLevel.details.help, default: 'info' }),
};

export type Options = Values<typeof OPTIONS>;
