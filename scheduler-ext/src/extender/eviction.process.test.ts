import { setTimeout as sleep } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { KubeConfig } from '@kubernetes/client-node';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { pino } from 'pino';
import { Cluster } from '../cluster/cluster.js';
import { gpuOf, inventoryOf, podOf } from '../testing/nodes.js';
import { Eviction } from './eviction.js';
import { Preemption, type Preemptor } from './preemption.js';

const logger = pino({ level: 'silent' });
const MINUTE = 60_000;
const pod = podOf('high', { priority: 100, slots: 8 }) as Preemptor;
let cluster: Cluster;
let eviction: Eviction;

/** Somebody leaves anyway, so nobody is evicted, and no API server is asked. */
beforeEach(async () => {
  // The clock that ends promises; not the one by which somebody leaves.
  jest.useFakeTimers({ doNotFake: ['Date', 'performance'] });
  cluster = new Cluster();
  cluster.putNode('node', inventoryOf(gpuOf('a')));
  cluster.putPod(
    podOf('leaves', {
      node: 'node',
      holding: new Map([['a', 5]]),
      leavesAt: Date.now() + 10 * MINUTE,
    }),
  );
  cluster.putPod(pod);
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: 'none', server: 'http://127.0.0.1:1', skipTLSVerify: false },
    { name: 'nobody' },
  );
  const preemption = new Preemption({
    cluster,
    strategy: 'binpack',
    budgets: async () => [],
    logger,
  });
  eviction = new Eviction({ api: new ApiServer(config), cluster, preemption, logger });
  eviction.consider(pod, ['node']);
  while (!isPromised()) await sleep(20);
});
afterEach(() => {
  eviction.stop();
  jest.useRealTimers();
});

function isPromised(): boolean {
  return cluster.node('node')?.promised.has('high') ?? false;
}

test('what is promised is kept while kube-scheduler names the node for the pod', () => {
  for (let round = 0; round < 5; round++) {
    jest.advanceTimersByTime(5.5 * MINUTE);
    eviction.consider(pod, ['other', 'node']);
  }
  expect(isPromised()).toBe(true);
});

test('it is everybody’s when the node was not named for some minutes, be the pod asked about or not', () => {
  jest.advanceTimersByTime(5.5 * MINUTE);
  eviction.consider(pod, ['other']);
  expect(isPromised()).toBe(true);
  jest.advanceTimersByTime(5.5 * MINUTE);
  expect(isPromised()).toBe(false);
});

test('where kube-scheduler has nominated a node since, it is kept', () => {
  cluster.putPod({ ...pod, nominated: 'node' });
  jest.advanceTimersByTime(20 * MINUTE);
  expect(isPromised()).toBe(true);
});
