import { ApiError } from '@nvidia-virtual/kube-common/api-server';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { pino } from 'pino';
import { Cluster } from '../cluster/cluster.js';
import type { PodRecord } from '../cluster/pod.js';
import { gpuOf, inventoryOf, podOf } from '../testing/nodes.js';
import { Replacement } from './replacement.js';

const GOOD = inventoryOf(gpuOf('a'), gpuOf('b'));
const LOST = inventoryOf(gpuOf('a', { healthy: false }), gpuOf('b'));

let cluster: Cluster;
/** Names of pods that evictions were asked for, and messages of events. */
let asked: string[];
let told: string[];
/** Answers of the Eviction API; none: it evicts. */
let refusals: ApiError[];
let unready: string | undefined;
let replacement: Replacement;

async function request(wanted: { path: string; body?: unknown }): Promise<never> {
  const { pathname } = new URL(wanted.path, 'http://127.0.0.1');
  const name = pathname.split('/')[6] ?? '';
  if (pathname.includes('/events/')) told.push((wanted.body as { message: string }).message);
  else {
    asked.push(name);
    const refusal = refusals.shift();
    if (refusal) throw refusal;
    cluster.putPod({ ...(cluster.pod(name) as PodRecord), leavesAt: Date.now() });
  }
  return undefined as never;
}

function begin(deadlineMs = 60_000): void {
  replacement = new Replacement({
    ...{ api: { request }, cluster, afterMs: 50, deadlineMs },
    condition: () => unready,
    logger: pino({ level: 'silent' }),
  });
}

const onGpu = (uid: string, gpu: string, more: Partial<PodRecord> = {}) =>
  cluster.putPod(
    podOf(uid, { node: 'node', holding: new Map([[gpu, 1]]), controlled: true, ...more }),
  );

beforeEach(() => {
  cluster = new Cluster();
  [asked, told, refusals, unready] = [[], [], [], undefined];
  cluster.putNode('node', LOST);
});
afterEach(() => replacement.stop());

test('pods with a controller on a lost GPU are evicted, and no others', async () => {
  onGpu('bare', 'a', { controlled: false });
  onGpu('ended', 'a', { ended: true });
  onGpu('leaves', 'a', { leavesAt: Date.now() });
  onGpu('elsewhere', 'b');
  cluster.putPod(podOf('unknown', { node: 'node', controlled: true }));
  onGpu('one', 'a');
  onGpu('two', 'a');
  begin();
  await until(() => asked.length === 2);
  expect(asked.sort()).toEqual(['one', 'two']);
  expect(told).toContain(
    'Pod default/one is evicted, because GPU a of node node cannot be used. ' +
      'Its controller creates another pod.',
  );
});

test('nothing is evicted before all pods and nodes are known', async () => {
  unready = 'The API server does not answer.';
  onGpu('one', 'a');
  begin();
  let looks = 0;
  await until(() => looks++ > 20);
  expect(asked).toEqual([]);
  unready = undefined;
  await until(() => asked.length === 1);
});

test('a refused eviction is retried, and after the deadline the pod says why', async () => {
  const refusal = new ApiError('Cannot evict pod: its disruption budget needs 1.', 429);
  refusals = [refusal, refusal];
  onGpu('one', 'a');
  begin(1);
  await until(() => asked.length === 3);
  expect(told.filter((message) => message.includes('could not be evicted'))).toEqual([
    expect.stringMatching(/GPU a of node node.* Cannot evict pod: its disruption budget needs 1\./),
  ]);
});

test('a pod whose GPU recovers meanwhile stays', async () => {
  refusals = Array.from({ length: 9 }, () => new ApiError('not now', 429));
  onGpu('one', 'a');
  onGpu('two', 'a');
  begin();
  await until(() => asked.length === 2);
  cluster.putNode('node', GOOD);
  cluster.putNode('other', inventoryOf(gpuOf('c', { healthy: false })));
  cluster.putPod(podOf('last', { node: 'other', holding: new Map([['c', 1]]), controlled: true }));
  refusals = [];
  await until(() => asked.includes('last'));
  expect(asked.sort()).toEqual(['last', 'one', 'two']);
});
