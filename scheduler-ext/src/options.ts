import { address, choice, filePath, many, nodeName } from '@nvidia-virtual/gpu-proxy/configuration/kinds';
import { option, type Values } from '@nvidia-virtual/gpu-proxy/configuration/option';

const COMMON = {
  kubeconfig: option(filePath, {
    help: 'how the API server is reached',
    otherwise: "the pod's service account, else what kubectl would use",
  }),
  http: option(address, { help: 'where /metrics, /healthz and /readyz are served', otherwise: 'not served' }),
  logLevel: option(choice('trace', 'debug', 'info', 'warn', 'error', 'fatal'), {
    help: 'the least important lines that are logged',
    default: 'info',
  }),
};

export const EXTENDER_OPTIONS = {
  ...COMMON,
  listen: option(address, {
    help: 'where kube-scheduler asks; whoever reaches it can have pods bound, so let nobody else do so',
    default: '127.0.0.1:8888',
  }),
  strategy: option(choice('binpack', 'spread'), {
    help: 'binpack: fill a GPU before another is begun; spread: take the emptiest',
    default: 'binpack',
  }),
};

export const WEBHOOK_OPTIONS = {
  ...COMMON,
  listen: option(address, { help: 'where the API server asks, over TLS', default: ':8443' }),
  namespace: option(nodeName, { help: 'the namespace of this installation', default: 'nvidia-virtual' }),
  release: option(nodeName, {
    help: 'what the names of the objects of this installation begin with: the Secret and the Service RELEASE-webhook, the webhook configurations RELEASE, the service accounts RELEASE-scheduler and RELEASE-node',
    default: 'nvidia-virtual',
  }),
  host: option(many(nodeName), {
    help: 'a name or address by which the API server reaches the webhook; several may be given',
    otherwise: 'the names of the Service',
  }),
};

export type ExtenderOptionValues = Values<typeof EXTENDER_OPTIONS>;
export type WebhookOptionValues = Values<typeof WEBHOOK_OPTIONS>;
