import { jest } from '@jest/globals';
import type { Holding } from '@nvidia-virtual/kube-common/holding';
import { gpuOf, inventoryOf, inventoryWith, podOf } from '../testing/nodes.js';
import { Cluster } from './cluster.js';
import { type PodRecord, readPod } from './pod.js';

const onA = (slots: number): Holding => new Map([['a', slots]]);
let cluster: Cluster;

beforeEach(() => {
  cluster = new Cluster();
  cluster.putNode('one', inventoryOf(gpuOf('a'), gpuOf('b')));
  cluster.putNode('two', inventoryOf(gpuOf('c')));
});

function used(node = 'one'): (number | undefined)[] {
  return cluster.node(node)?.gpus.map((gpu) => gpu.used) ?? [];
}

test('a reservation counts until the pod shows its binding, and then only once', () => {
  cluster.putPod(podOf('p'));
  cluster.reserve(podOf('p'), 'one', onA(3));
  expect(used()).toEqual([3, 0]);
  cluster.putPod(podOf('p'));
  expect(used()).toEqual([3, 0]);
  cluster.confirm('p');
  cluster.putPod(podOf('p', { node: 'one', holding: onA(3) }));
  expect([used(), cluster.isReserved('p')]).toEqual([[3, 0], false]);
  cluster.putPod(podOf('p', { node: 'one', holding: onA(3), ended: true }));
  expect(used()).toEqual([0, 0]);
});

test('a reservation is released when the binding failed', () => {
  cluster.putPod(podOf('p'));
  cluster.reserve(podOf('p'), 'one', onA(3));
  cluster.release('p');
  expect(used()).toEqual([0, 0]);
});

test('a pod that is deleted during its binding holds nothing afterwards', () => {
  cluster.putPod(podOf('p'));
  cluster.reserve(podOf('p'), 'one', onA(3));
  cluster.removePod('p');
  expect(used()).toEqual([0, 0]);
  cluster.confirm('p');
  expect([used(), cluster.counts.reservations]).toEqual([[0, 0], 0]);
});

test('a failure that arrives after the pod was seen bound changes nothing', () => {
  cluster.putPod(podOf('p'));
  cluster.reserve(podOf('p'), 'one', onA(3));
  cluster.putPod(podOf('p', { node: 'one', holding: onA(3) }));
  cluster.release('p');
  expect(used()).toEqual([3, 0]);
});

test.each([
  ['reserved', () => cluster.reserve(podOf('p'), 'one', onA(3))],
  ['bound', () => cluster.putPod(podOf('p', { node: 'one', holding: onA(3) }))],
])('the end of a claim frees no slots of a pod that is %s', (_, happens) => {
  cluster.putPod(podOf('p'));
  happens();
  cluster.claim(podOf('p'), 'one', onA(3));
  cluster.unclaim('p');
  expect(used()).toEqual([3, 0]);
});

test('the actual node of the pod counts, not the reservation', () => {
  cluster.putPod(podOf('p'));
  cluster.reserve(podOf('p'), 'one', onA(3));
  cluster.putPod(podOf('p', { node: 'two', holding: new Map([['c', 2]]) }));
  expect([used('one'), used('two')]).toEqual([[0, 0], [2]]);
});

test('a new list removes missing pods, except bindings that are newer or in progress', () => {
  cluster.putPod(podOf('gone', { node: 'one', holding: onA(1) }));
  for (const uid of ['under-way', 'older', 'younger']) cluster.reserve(podOf(uid), 'one', onA(2));
  cluster.confirm('older');
  const since = performance.now() + 1;
  const clock = jest.spyOn(performance, 'now').mockReturnValue(since + 1);
  cluster.confirm('younger');
  clock.mockRestore();
  cluster.replacePods([podOf('new', { node: 'two', holding: new Map([['c', 5]]) })], since);
  expect([used('one'), used('two')]).toEqual([[4, 0], [5]]);
});

test('a pod without assignment counts on every GPU of its node', () => {
  cluster.putNode(
    'one',
    inventoryOf(gpuOf('a'), gpuOf('b', { mode: 'concurrent' }), gpuOf('d', { healthy: false })),
  );
  cluster.putPod(podOf('foreign', { node: 'one', slots: 4 }));
  expect([used(), cluster.node('one')?.gpus.map(({ unknown }) => unknown)]).toEqual([
    [4, 4, 4],
    [4, 4, 4],
  ]);
  cluster.removePod('foreign');
  expect(used()).toEqual([0, 0, 0]);
});

test.each([
  ['gpu-type', 'H200,!H200', 4],
  ['gpu-uuid', 'GPU-1a,!GPU-1a', 4],
  ['gpu-uuid', 'GPU-1b', 4],
  ['memory', '1Ti', 4],
  ['cores', '100', 4],
  ['mode', 'concurrent', 4],
  ['gpus', '2', 2],
])('its nvidia-virtual/%s %j makes that %d slots on each GPU', (name, value, slots) => {
  const oversubscribed = { mostSlots: 5 };
  cluster.putNode('one', inventoryOf(gpuOf('GPU-1a'), gpuOf('GPU-1b', oversubscribed)));
  const containers = [{ name: 'main', resources: { limits: { 'nvidia-virtual/gpu': '4' } } }];
  const metadata = { uid: 'p', annotations: { [`nvidia-virtual/${name}`]: value } };
  cluster.putPod(readPod({ metadata, spec: { nodeName: 'one', containers } }, 10) as PodRecord);
  expect(used()).toEqual([slots, slots]);
});

test('a pod without assignment that cannot be parsed takes every GPU', () => {
  cluster.putPod(podOf('foreign', { node: 'one', demand: undefined, problem: 'wrong' }));
  expect(used()).toEqual([10, 10]);
});

test('pods that choose their node, and ask for very many slots, leave the count exact', () => {
  cluster.putPod(podOf('one', { node: 'one', holding: onA(6) }));
  cluster.putPod(podOf('other', { node: 'one', holding: onA(4) }));
  const uids = Array.from({ length: 40 }, (_, index) => `greedy-${index}`);
  const greedy = (uid: string) => podOf(uid, { node: 'one', slots: Number.MAX_SAFE_INTEGER });
  for (const uid of uids) cluster.putPod(greedy(uid));
  for (const uid of uids) cluster.putPod({ ...greedy(uid), ended: true });
  expect(used()).toEqual([10, 0]);
});

describe('a pod without assignment, whose GPU the node reports,', () => {
  const REPORT = inventoryWith({ placed: [{ pod: 'foreign', gpus: [{ gpu: 'b', slots: 4 }] }] });
  const unknown = () => cluster.node('one')?.gpus.map((gpu) => gpu.unknown);

  test.each(['before', 'after'])('counts there only, if the report comes %s the pod', (order) => {
    if (order === 'before') cluster.putNode('one', REPORT);
    cluster.putPod(podOf('foreign', { node: 'one', slots: 4 }));
    if (order === 'after') cluster.putNode('one', REPORT);
    expect([used(), unknown()]).toEqual([
      [0, 4],
      [0, 0],
    ]);
    cluster.removePod('foreign');
    expect(used()).toEqual([0, 0]);
  });

  test('counts on every GPU again when the report has ended', () => {
    cluster.putNode('one', REPORT);
    cluster.putPod(podOf('foreign', { node: 'one', slots: 4 }));
    cluster.putNode('one', inventoryWith({}));
    expect([used(), unknown()]).toEqual([
      [4, 4],
      [4, 4],
    ]);
    cluster.removePod('foreign');
    expect(used()).toEqual([0, 0]);
  });

  test('counts on every GPU of another node', () => {
    cluster.putNode('one', REPORT);
    cluster.putPod(podOf('foreign', { node: 'two', slots: 4 }));
    expect([used('one'), used('two')]).toEqual([[0, 0], [4]]);
  });

  test('lets waiting pods try again', () => {
    const gained: string[] = [];
    cluster = new Cluster((node) => gained.push(node.name));
    cluster.putNode('one', inventoryWith({}));
    cluster.putPod(podOf('foreign', { node: 'one', slots: 4 }));
    gained.length = 0;
    cluster.putNode('one', REPORT);
    expect(gained).toEqual(['one']);
  });
});

test('an assignment counts, whatever the node reports', () => {
  cluster.putNode('one', inventoryWith({ placed: [{ pod: 'p', gpus: [{ gpu: 'b', slots: 1 }] }] }));
  cluster.putPod(podOf('p', { node: 'one', holding: onA(3) }));
  expect(used()).toEqual([3, 0]);
});

test('pods are counted when their node appears later, disappears, returns, or changes', () => {
  cluster.putPod(podOf('p', { node: 'three', holding: onA(3) }));
  cluster.putNode('three', inventoryOf(gpuOf('a')));
  expect(used('three')).toEqual([3]);
  cluster.removeNode('three');
  expect(used('three')).toEqual([]);
  cluster.putNode('three', inventoryOf(gpuOf('a', { healthy: false })));
  expect(used('three')).toEqual([3]);
  cluster.removePod('p');
  cluster.removeNode('three');
  expect(cluster.node('three')).toBeUndefined();
});

test('a promise holds on the chosen node until the pod is bound or deleted', () => {
  const holdings = new Map([
    ['one', onA(8)],
    ['two', new Map([['c', 8]])],
  ]);
  const promised = () => ['one', 'two'].map((name) => cluster.node(name)?.promised.size);
  cluster.putPod(podOf('p', { priority: 5 }));
  cluster.promise(podOf('p', { priority: 5 }), holdings);
  expect(promised()).toEqual([0, 0]);
  cluster.putPod(podOf('p', { priority: 5, nominated: 'two' }));
  expect(promised()).toEqual([0, 1]);
  cluster.putPod(podOf('p', { priority: 5, nominated: 'one' }));
  expect(promised()).toEqual([1, 0]);
  cluster.putPod(podOf('p', { priority: 5, node: 'one', holding: onA(8) }));
  expect([promised(), used()]).toEqual([
    [0, 0],
    [8, 0],
  ]);
});

test('nodes that differ in names only are in the same state, unless slots are promised', () => {
  cluster.putNode('three', inventoryOf(gpuOf('d'), gpuOf('e')));
  cluster.putNode('four', inventoryOf(gpuOf('f'), gpuOf('g')));
  const [three, four] = [cluster.node('three'), cluster.node('four')];
  expect(three?.state).toBe(four?.state);
  four?.hold({ uid: 'p', priority: 0, holding: new Map([['f', 1]]), demand: undefined });
  expect(three?.state).not.toBe(four?.state);
  four?.release('p');
  expect(three?.state).toBe(four?.state);
  four?.promise({ uid: 'p', priority: 0, holding: new Map([['f', 1]]), demand: undefined });
  expect(four?.state).toBeUndefined();
  four?.unpromise('p');
  expect(three?.state).toBe(four?.state);
});

test('a bound pod holds a second GPU until another version of it is seen', () => {
  const gained: string[] = [];
  cluster = new Cluster((node) => gained.push(node.name));
  cluster.putNode('one', inventoryOf(gpuOf('a'), gpuOf('b')));
  const pod = podOf('p', { node: 'one', holding: onA(3), version: '7' });
  const onB = new Map([['b', 3]]);
  cluster.putPod(pod);
  cluster.holdAlso(pod, onB);
  cluster.putPod(pod);
  expect([used(), cluster.holdsAlso('p')]).toEqual([[3, 3], true]);
  gained.length = 0;
  cluster.putPod({ ...pod, version: '8' });
  expect([used(), cluster.holdsAlso('p'), gained]).toEqual([[3, 0], false, ['one']]);
  cluster.holdAlso({ ...pod, version: '8' }, onB);
  cluster.letGo('p');
  expect(used()).toEqual([3, 0]);
  cluster.holdAlso({ ...pod, version: '8' }, onB);
  cluster.putPod({ ...pod, version: '8', ended: true });
  expect([used(), cluster.holdsAlso('p')]).toEqual([[0, 0], false]);
});
