import { EventEmitter, once } from 'node:events';
import { jest } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import { pino } from 'pino';
import { Cluster } from '../cluster/cluster.js';
import { type PodRecord, readPod } from '../cluster/pod.js';
import { Judges } from '../placement/judges.js';
import { gpuOf, inventoryOf, podOf } from '../testing/nodes.js';
import type { Binder } from './binder.js';
import type { Eviction } from './eviction.js';
import { Extender } from './extender.js';
import { Groups } from './groups.js';
import type { Preemption } from './preemption.js';
import { Retry } from './retry.js';

const logger = pino({ level: 'silent' });
const NODES = ['one', 'two', 'three'];

/** A pod that asks for 6 slots. */
const POD: V1Pod = {
  metadata: { name: 'pod', namespace: 'default', uid: 'pod' },
  spec: { containers: [{ name: 'main', resources: { limits: { [RESOURCE]: '6' } } }] },
};

let requests: EventEmitter;
let cluster: Cluster;
let retry: Retry;
let extender: Extender;

beforeEach(() => {
  requests = new EventEmitter();
  const request = async ({ path }: { readonly path: string }) => requests.emit('request', path);
  const api = { request } as unknown as ApiServer;
  cluster = new Cluster((node, claimed) => retry.gained(node, claimed));
  const judges = new Judges('binpack');
  retry = new Retry({ api, cluster, judges, logger });
  extender = new Extender({
    ...{ cluster, judges, slotCores: undefined, retry, logger },
    succession: { wait: async () => {} },
    groups: new Groups({ cluster, strategy: 'binpack' }),
    binder: {} as Binder,
    preemption: {} as Preemption,
    eviction: { consider: () => {} } as unknown as Eviction,
    condition: () => undefined,
  });
  for (const name of NODES) {
    cluster.putNode(name, inventoryOf(gpuOf(name)));
    cluster.putPod(podOf(`on-${name}`, { node: name, holding: new Map([[name, 5]]) }));
  }
  cluster.putPod(readPod(POD) as PodRecord);
  // Each node seems to be judged for a long time.
  let now = performance.now();
  jest.spyOn(performance, 'now').mockImplementation(() => (now += 20));
});
afterEach(() => {
  retry.stop();
  jest.restoreAllMocks();
});

test('while nodes are judged, events are processed', async () => {
  const answer = extender.filter({ Pod: POD, NodeNames: NODES });
  const judged = jest.spyOn(cluster, 'node');
  while (judged.mock.calls.length === 0) await new Promise(setImmediate);
  expect(judged.mock.calls.length).toBeLessThan(NODES.length);
  cluster.removePod('on-three');
  expect(await answer).toEqual({ NodeNames: ['three'] });
});

test('a pod is retried if slots become free on a node that was judged already', async () => {
  const retried = once(requests, 'request');
  const answer = extender.filter({ Pod: POD, NodeNames: NODES });
  const judged = jest.spyOn(cluster, 'node');
  while (judged.mock.calls.length === 0) await new Promise(setImmediate);
  cluster.removePod('on-one');
  expect(await answer).toMatchObject({ NodeNames: [] });
  expect((await retried)[0]).toBe('/api/v1/namespaces/default/pods/pod/status');
});
