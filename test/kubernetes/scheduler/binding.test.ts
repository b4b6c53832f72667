import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import { readAssignment } from '@nvidia-virtual/kube-common/assignment';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import type { ExtenderService } from '@nvidia-virtual/scheduler-ext/extender/extender-service';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { ControlPlane } from '../control-plane.js';
import { assigned, ClusterUnderTest, slotsSold } from './cluster-under-test.js';
import { gpu, inventory, pod } from './objects.js';
import { startExtender } from './scheduling.js';
import { SlowWay } from './slow-way.js';

const GIB = 2 ** 30;

/**
 * Sends requests to the extender as kube-scheduler does, at moments that kube-scheduler would
 * rarely hit.
 */
let plane: ControlPlane;
let cluster: ClusterUnderTest;
let way: SlowWay;
let extender: ExtenderService;

beforeAll(async () => {
  plane = await ControlPlane.start();
  cluster = new ClusterUnderTest(plane.adminKubeconfig);
  await cluster.addNode('one', [gpu('GPU-a'), gpu('GPU-b')]);
  way = await SlowWay.start(plane);
  extender = await startReady(way.kubeconfig(plane.directory));
});
afterAll(async () => {
  await extender?.end();
  way?.stop();
  cluster?.api.close();
  await plane?.stop();
});
afterEach(async () => {
  await cluster.removePods();
  await until(
    () => used().every((slots) => slots === 0) && extender.cluster.counts.reservations === 0,
    'nothing is held',
  );
});

async function startReady(kubeconfig: string): Promise<ExtenderService> {
  const started = await startExtender({ kubeconfig, slotCores: 10 });
  await until(() => started.cluster.node('one')?.gpus.length === 2, 'the extender knows the node');
  return started;
}

function used(): number[] {
  return extender.cluster.node('one')?.gpus.map((gpu) => gpu.used) ?? [];
}

async function ask<T>(verb: string, body: string, { port } = extender): Promise<T> {
  const answer = await fetch(`http://127.0.0.1:${port}/${verb}`, { method: 'POST', body });
  return (await answer.json()) as T;
}

function bind({ metadata }: V1Pod, node = 'one'): Promise<{ Error?: string }> {
  const { name, namespace, uid } = metadata ?? {};
  return ask(
    'bind',
    JSON.stringify({ PodName: name, PodNamespace: namespace, PodUID: uid, Node: node }),
  );
}

test('of two pods that compete for the last slots one gets them, fifty times', async () => {
  const pods = await Promise.all(
    Array.from({ length: 100 }, (_, index) => cluster.create(pod(`racer-${index}`, { slots: 10 }))),
  );
  await bind(await cluster.create(pod('holds-b', { slots: 10 })));
  for (let round = 0; round < 100; round += 2) {
    const answers = await Promise.all([bind(pods[round] as V1Pod), bind(pods[round + 1] as V1Pod)]);
    const refusals = answers.flatMap(({ Error: refusal }) => refusal ?? []);
    expect(refusals).toEqual([expect.stringContaining('another pod was bound first')]);
    const winner = answers[0]?.Error === undefined ? round : round + 1;
    await cluster.delete(`racer-${winner}`);
    await until(() => used().includes(0), 'the slots are free again');
  }
});

test('thirty concurrent bindings use each slot once', async () => {
  const pods = await Promise.all(
    Array.from({ length: 30 }, (_, index) => cluster.create(pod(`p-${index}`, { slots: 3 }))),
  );
  const answers = await Promise.all(pods.map((one) => bind(one)));
  expect(answers.filter((answer) => answer.Error === undefined)).toHaveLength(6);
  expect(slotsSold(await cluster.pods())).toEqual({ 'GPU-a': 9, 'GPU-b': 9 });
});

test('a part of the time takes slots beyond those of the memory, and the pod says so', async () => {
  const annotations = { 'nvidia-virtual/cores': '60' };
  const first = await cluster.create(pod('first', { slots: 6, annotations }));
  const second = await cluster.create(
    pod('second', { slots: 3, annotations: { 'nvidia-virtual/cores': '30' } }),
  );
  await cluster.addNode('large', [gpu('GPU-large', { slots: 100, slotMemory: GIB })]);
  await until(() => extender.cluster.node('large')?.gpus.length === 1, 'the node is known');
  const answers = [await bind(first, 'large'), await bind(second, 'large')];
  expect(answers).toEqual([{}, {}]);
  expect(extender.cluster.node('large')?.gpus[0]?.used).toBe(90);
  const { metadata } = await cluster.get('second');
  expect(readAssignment(metadata?.annotations?.[ANNOTATION.assigned])?.containers).toEqual({
    main: [{ gpu: 'GPU-large', slots: 3, taken: 30 }],
  });
  const third = await cluster.create(
    pod('third', { slots: 2, annotations: { 'nvidia-virtual/cores': '11' } }),
  );
  expect((await bind(third, 'large')).Error).toContain('without 11 free slots on one GPU');
  await cluster.removePods();
  await cluster.removeNode('large');
});

test('number 18: a pod that was deleted before its binding holds nothing', async () => {
  const gone = await cluster.create(pod('gone', { slots: 10 }));
  await until(
    () => extender.cluster.pod(gone.metadata?.uid ?? '') !== undefined,
    'the extender has seen it',
  );
  const [{ Error: refusal }] = await Promise.all([bind(gone), cluster.delete('gone')]);
  // Binding and deletion run in any order: the slots are free afterwards (afterEach).
  if (refusal !== undefined)
    expect(refusal).toMatch(
      /no longer exists, so it is not bound|is being deleted, cannot be assigned/,
    );
  await until(
    () => extender.cluster.pod(gone.metadata?.uid ?? '') === undefined,
    'the extender has seen the deletion',
  );
  expect((await bind(gone)).Error).toBe('Pod default/gone no longer exists, so it is not bound.');
});

test('number 18: a pod that was deleted and recreated is another pod', async () => {
  const former = await cluster.create(pod('again', { slots: 10 }));
  await cluster.delete('again');
  const later = await cluster.create(pod('again', { slots: 2 }));
  expect((await bind(former)).Error).toMatch(
    /was deleted and created again|binding pod default\/again to/,
  );
  expect((await bind(later)).Error).toBeUndefined();
  expect(assigned(await cluster.get('again'))).toEqual({ main: '2 of GPU-a' });
});

test('a binding that is repeated before the watch shows the pod succeeds', async () => {
  for (let round = 0; round < 20; round++) {
    const repeated = await cluster.create(pod(`repeated-${round}`, { slots: 1 }));
    expect((await bind(repeated)).Error).toBeUndefined();
    expect((await bind(repeated)).Error).toBeUndefined();
  }
});

test('if another scheduler binds a pod meanwhile, its node is looked up', async () => {
  const twice = await cluster.create(pod('twice', { slots: 4 }));
  way.hold('bindings');
  const answer = bind(twice);
  await until(() => way.count('bindings') === 1, 'the binding is held');
  await cluster.bind('twice', 'elsewhere');
  way.letGo('bindings');
  expect((await answer).Error).toContain('binding pod default/twice to node one is unknown');
  await until(() => extender.cluster.counts.reservations === 0, 'the extender has asked');
  expect(used()).toEqual([0, 0]);
});

test('a pod that is known to be bound keeps its slots and gets no others', async () => {
  const foreign = await cluster.create(
    pod('foreign', { slots: 4, spec: { nodeName: 'elsewhere' } }),
  );
  const elsewhere =
    'Pod default/foreign is bound to node elsewhere already, so it is not bound to node one.';
  expect(await bind(foreign)).toEqual({ Error: elsewhere });
  const ours = await cluster.create(pod('ours', { slots: 4 }));
  expect(await bind(ours)).toEqual({});
  await until(
    () => extender.cluster.pod(ours.metadata?.uid ?? '')?.node === 'one',
    'the extender has seen it bound',
  );
  way.hold('bindings');
  // kube-scheduler did not see it, and asks again.
  expect(await bind(ours)).toEqual({});
  expect([way.count('bindings'), used()]).toEqual([0, [4, 0]]);
  way.letGo('bindings');
});

test('the slots of a binding that takes effect after its timeout are still reserved', async () => {
  const [late, other] = [
    await cluster.create(pod('late', { slots: 10 })),
    await cluster.create(pod('other', { slots: 10 })),
  ];
  expect(await bind(await cluster.create(pod('holds-b', { slots: 10 })))).toEqual({});
  way.hold('bindings');
  const { questions } = way;
  expect((await bind(late)).Error).toContain('binding pod default/late to node one is unknown');
  // Asked twice, so that the first answer, that it is not bound, changed nothing.
  await until(() => way.questions > questions + 1, 'the pod is asked again');
  expect((await bind(other)).Error).toContain('another pod was bound first');
  way.letGo('bindings');
  await cluster.bound('late');
  expect(slotsSold(await cluster.pods())).toEqual({ 'GPU-a': 10, 'GPU-b': 10 });
  await until(() => extender.cluster.counts.reservations === 0, 'the pod said so');
  expect(used()).toEqual([10, 10]);
});

test('a new leader sees the last binding of its predecessor at once', async () => {
  const [late, other] = [
    await cluster.create(pod('late', { slots: 10 })),
    await cluster.create(pod('other', { slots: 10 })),
  ];
  expect(await bind(await cluster.create(pod('holds-b', { slots: 10 })))).toEqual({});
  const successor = await startReady(plane.adminKubeconfig);
  way.hold('bindings');
  const bound = bind(late);
  await until(() => way.count('bindings') === 1, 'the binding is held');
  const filtered = ask('filter', JSON.stringify({ Pod: other, NodeNames: ['one'] }), successor);
  // Its answer shows that the successor has received the earlier request, too.
  await ask('prioritize', JSON.stringify({ Pod: other, NodeNames: ['one'] }), successor);
  way.letGo('bindings');
  expect(await bound).toEqual({});
  expect(await filtered).toMatchObject({
    NodeNames: [],
    FailedNodes: { one: expect.stringContaining('the most on one: 0 of 10') },
  });
  await successor.end();
});

test('a score uses the cached judgement of an equal demand only', async () => {
  const [small, large] = [
    await cluster.create(pod('small', { slots: 1 })),
    await cluster.create(pod('large', { slots: 10 })),
  ];
  const weighed = async (Pod: V1Pod, ...NodeNames: string[]) => {
    const list = await ask<{ Host: string; Score: number }[]>(
      'prioritize',
      JSON.stringify({ Pod, NodeNames }),
    );
    return list.map(({ Host, Score }) => [Host, Score]);
  };
  const filtered = async (Pod: V1Pod, ...NodeNames: string[]) =>
    (await ask<{ NodeNames: string[] }>('filter', JSON.stringify({ Pod, NodeNames }))).NodeNames;
  const [ofSmall, ofLarge] = [await weighed(small, 'one'), await weighed(large, 'one')];
  expect(ofSmall).not.toEqual(ofLarge);
  expect(await filtered(small, 'one', 'nowhere')).toEqual(['one']);
  expect(await weighed(small, 'one')).toEqual(ofSmall);
  expect(await weighed(large, 'one')).toEqual(ofLarge);
  expect(await filtered(large, 'one')).toEqual(['one']);
  expect(await weighed(small, 'one')).toEqual(ofSmall);
  expect(await filtered(small, 'one')).toEqual(['one']);
  expect(await weighed(small, 'one', 'nowhere')).toEqual([...ofSmall, ['nowhere', 0]]);
  // A binding changes the state of the node.
  expect(await filtered(small, 'one')).toEqual(['one']);
  expect(await bind(large)).toEqual({});
  expect(await weighed(small, 'one')).not.toEqual(ofSmall);
});

test('of many nodes that fit, filter names the hundred with the best scores', async () => {
  const names = Array.from({ length: 150 }, (_, index) => `many-${index}`);
  for (const [index, name] of names.entries()) {
    const slots = index % 2 === 0 ? 5 : 10;
    extender.cluster.putNode(name, inventory([gpu(`GPU-${name}`, { slots })]));
  }
  const half = pod('half', { slots: 5 });
  const body = JSON.stringify({ Pod: half, NodeNames: [...names, 'without-gpus'] });
  const answer = await ask<{ NodeNames: string[] }>('filter', body);
  for (const name of names) extender.cluster.removeNode(name);
  // Binpack prefers the GPUs that the pod fills.
  const filled = names.filter((_, index) => index % 2 === 0);
  expect(answer).toEqual({ NodeNames: expect.any(Array) });
  expect(answer.NodeNames.slice(0, filled.length)).toEqual(filled);
  expect(answer.NodeNames).toHaveLength(100);
});

test('a pod that is deleted while its binding is looked up holds nothing', async () => {
  const asked = await cluster.create(pod('asked', { slots: 10 }));
  const uid = asked.metadata?.uid ?? '';
  await until(() => extender.cluster.pod(uid) !== undefined, 'the extender has seen it');
  way.hold('bindings');
  way.hold('questions');
  await bind(asked);
  await until(() => way.count('questions') === 1, 'the pod is asked');
  way.letGo('bindings');
  await until(() => extender.cluster.pod(uid)?.node === 'one', 'the extender has seen it bound');
  way.hold('answers');
  way.letGo('questions');
  await until(() => way.count('answers') === 1, 'the API server has answered');
  await cluster.delete('asked');
  await until(() => extender.cluster.pod(uid) === undefined, 'the extender has seen it gone');
  way.letGo('answers');
  expect(await bind(await cluster.create(pod('next', { slots: 10 })))).toEqual({});
  expect(used()).toEqual([10, 0]);
});

test('slots stay reserved while the API server is down, then follow the pods', async () => {
  const [first, second] = [
    await cluster.create(pod('first', { slots: 10 })),
    await cluster.create(pod('second', { slots: 10 })),
  ];
  const uid = (one: V1Pod) => one.metadata?.uid ?? '';
  await until(
    () => [first, second].every((one) => extender.cluster.pod(uid(one)) !== undefined),
    'the extender has seen them',
  );
  await plane.daemon('kube-apiserver').kill();
  const answers = await Promise.all([bind(first), bind(second)]);
  for (const { Error: refusal } of answers)
    expect(refusal).toContain('Its slots stay reserved until it is known.');
  expect(used()).toEqual([10, 10]);
  plane.daemon('kube-apiserver').start();
  await plane.ready();
  // Neither was bound, so both sets of slots are released, and the pods can be bound again.
  await until(() => extender.cluster.counts.reservations === 0, 'the outcome is known');
  await until(async () => (await bind(first)).Error === undefined, 'first is bound');
  expect(assigned(await cluster.get('first'))).toEqual({ main: '10 of GPU-a' });
});

test('an invalid request is refused with a message', async () => {
  expect(await ask('filter', '{')).toEqual({
    Error: expect.stringContaining('to /filter is refused'),
  });
  expect(await ask('nothing', '{}')).toEqual({
    Error: expect.stringContaining('nothing is served there'),
  });
  expect(await ask('filter', JSON.stringify({ Pod: pod('x'), Nodes: { items: [] } }))).toEqual({
    Error: expect.stringContaining('set nodeCacheCapable'),
  });
});
