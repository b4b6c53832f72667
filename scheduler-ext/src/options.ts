import {
  address,
  choice,
  duration,
  filePath,
  many,
  memorySize,
  nodeName,
  objectName,
  percent,
  wholeNumber,
} from '@nvidia-virtual/service/configuration/kinds';
import { option, type Values } from '@nvidia-virtual/service/configuration/option';
import { SHARED_OPTIONS } from '@nvidia-virtual/service/configuration/shared-options';

const { certificateDirectory, http, logLevel } = SHARED_OPTIONS;

const COMMON = {
  kubeconfig: option(filePath, {
    help: 'kubeconfig of the API server',
    otherwise: "the pod's service account, else what kubectl would use",
  }),
  http,
  logLevel,
};

export const EXTENDER_OPTIONS = {
  ...COMMON,
  listen: option(address, {
    help:
      'address for kube-scheduler; every client that reaches it can bind pods, so ' +
      'restrict access',
    default: '127.0.0.1:8888',
  }),
  strategy: option(choice('binpack', 'spread'), {
    help: 'binpack: fill a GPU before the next one; spread: take the emptiest GPU',
    default: 'binpack',
  }),
  evictAfter: option(duration('1s', '86400s'), {
    help:
      'time for which a GPU must have failed before pods on it are evicted, if a controller ' +
      'creates others',
    otherwise: 'never',
  }),
  lease: option(objectName, {
    help:
      "NAMESPACE/NAME of kube-scheduler's lease: of several extenders, only that beside the " +
      'leader moves pods to other GPUs',
    otherwise: 'it is the only extender',
  }),
  slotCores: option(percent, {
    help: "percent of a GPU's time that a pod may ask for with one slot",
    otherwise: 'a pod may ask for the part of the GPU that its slots are, and no more',
  }),
};

export const WEBHOOK_OPTIONS = {
  ...COMMON,
  listen: option(address, { help: 'address for the API server, over TLS', default: ':8443' }),
  namespace: option(nodeName, {
    help: 'the namespace of this installation',
    default: 'nvidia-virtual',
  }),
  release: option(nodeName, {
    help:
      'prefix of the names of our objects: the Secret and the Service RELEASE-webhook, ' +
      'the webhook configurations RELEASE, the service accounts RELEASE-scheduler and ' +
      'RELEASE-node',
    default: 'nvidia-virtual',
  }),
  host: option(many(nodeName), {
    help: 'a name or address by which the API server reaches the webhook; several may be given',
    otherwise: 'the names of the Service',
  }),
  slotMemory: option(memorySize, {
    help: 'GPU memory of a slot on every node: pods that ask for memory get their slots by it',
    otherwise: 'a slot is another amount on each GPU, so pods must ask for slots',
  }),
  slotCores: option(percent, {
    help: "percent of a GPU's time that a pod may ask for with one slot, if slotMemory is set",
    default: '10',
  }),
  certificateDirectory,
  slotsPerGpu: option(wholeNumber(1, 100), {
    help: 'slots of each GPU, if slotMemory is not set; for the requests that are translated',
    default: '10',
  }),
  translate: option(many(choice('hami', 'nvidia')), {
    help:
      "hami: pods that ask for a part of a GPU by HAMi's resources get ours; " +
      'nvidia: also pods that ask for nvidia.com/gpu',
    otherwise: 'only pods that ask for our resource are changed',
  }),
  clientAuthority: option(filePath, {
    help:
      "PEM file of the CA of the API server's client certificate; " +
      'connections without such a certificate are refused',
    otherwise: 'every client is accepted',
  }),
};

export type ExtenderOptionValues = Values<typeof EXTENDER_OPTIONS>;
export type WebhookOptionValues = Values<typeof WEBHOOK_OPTIONS>;
