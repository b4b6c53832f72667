import { jest } from '@jest/globals';
import { KubeConfig } from '@kubernetes/client-node';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { until } from '@nvidia-virtual/service/testing/eventually';
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

/** Another pod is terminating anyway, so nothing is evicted and the API server is not called. */
beforeEach(async () => {
  // Fakes the clock of promises, but not the clock of terminating pods.
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
  await until(isPromised);
});
afterEach(() => {
  eviction.stop();
  jest.useRealTimers();
});

function isPromised(): boolean {
  return cluster.node('node')?.promised.has('high') ?? false;
}

test('a promise is kept while kube-scheduler names its node for the pod', () => {
  for (let round = 0; round < 5; round++) {
    jest.advanceTimersByTime(5.5 * MINUTE);
    eviction.consider(pod, ['other', 'node']);
  }
  expect(isPromised()).toBe(true);
});

test('a promise for a node that is not named for minutes expires', () => {
  jest.advanceTimersByTime(5.5 * MINUTE);
  eviction.consider(pod, ['other']);
  expect(isPromised()).toBe(true);
  jest.advanceTimersByTime(5.5 * MINUTE);
  expect(isPromised()).toBe(false);
});

test.each([
  ['deleted', () => cluster.removePod('high')],
  ['bound', () => cluster.putPod({ ...pod, node: 'node', holding: new Map() })],
])('the preemption for a pod that was %s is forgotten', async (_, end) => {
  end();
  expect(isPromised()).toBe(false);
  eviction.consider(podOf('other', { slots: 8 }) as Preemptor, ['node']);
  // The same UID shows whether it is still known.
  cluster.putPod(pod);
  eviction.consider(pod, ['node']);
  await until(isPromised);
});

test('a promise is kept after kube-scheduler nominated its node', () => {
  cluster.putPod({ ...pod, nominated: 'node' });
  jest.advanceTimersByTime(20 * MINUTE);
  expect(isPromised()).toBe(true);
});
