import type { V1Container, V1Pod } from '@kubernetes/client-node';
import { isLeaving, type PodRecord, readPod } from './pod.js';

function container(name: string, slots: number, more: Partial<V1Container> = {}): V1Container {
  return { name, resources: { limits: { 'nvidia-virtual/gpu': String(slots) } }, ...more };
}

function pod(assigned: string | undefined, more: Partial<V1Pod> = {}): V1Pod {
  const annotations = assigned === undefined ? {} : { 'nvidia-virtual/assigned': assigned };
  const initContainers = [
    container('prepare', 6),
    container('sidecar', 2, { restartPolicy: 'Always' }),
    container('late', 3),
  ];
  const spec = {
    nodeName: 'node',
    initContainers,
    containers: [container('main', 4), { name: 'other' }],
  };
  return { metadata: { uid: 'u', name: 'p', namespace: 'n', annotations }, spec, ...more };
}

function assignment(containers: Record<string, [string, number][]>): string {
  const lists = Object.entries(containers).map(([name, gpus]) => [
    name,
    gpus.map(([gpu, slots]) => ({ gpu, slots })),
  ]);
  return JSON.stringify({ version: 1, containers: Object.fromEntries(lists) });
}

test('number 22: a pod holds the maximum over time: init containers, then sidecars', () => {
  const one = readPod(
    pod(
      assignment({ prepare: [['a', 6]], sidecar: [['a', 2]], late: [['a', 3]], main: [['a', 4]] }),
    ),
  );
  expect(one?.holding).toEqual(new Map([['a', 6]]));
  const two = readPod(
    pod(
      assignment({
        prepare: [['b', 6]],
        sidecar: [['a', 2]],
        late: [['b', 3]],
        main: [
          ['a', 2],
          ['b', 2],
        ],
      }),
    ),
  );
  expect(two?.holding).toEqual(
    new Map([
      ['a', 4],
      ['b', 6],
    ]),
  );
});

test.each([undefined, '{', 'null', '{"version":2}', '{"version":1,"containers":7}'])(
  'an assignment %j counts as none',
  (text) => {
    expect(readPod(pod(text))?.holding).toBeUndefined();
  },
);

test('an empty annotation asks for no move', () => {
  const moveTo = (value: string) => {
    const { metadata, ...rest } = pod(undefined);
    const annotations = { ...metadata?.annotations, 'nvidia-virtual/move-to': value };
    return readPod({ ...rest, metadata: { ...metadata, annotations } })?.moveTo;
  };
  expect(['GPU-b', ''].map(moveTo)).toEqual(['GPU-b', undefined]);
});

test('a pod that requests no slots is ignored', () => {
  expect(
    readPod({ metadata: { uid: 'u' }, spec: { containers: [{ name: 'main' }] } }),
  ).toBeUndefined();
});

test.each([
  ['Running', false],
  ['Succeeded', true],
  ['Failed', true],
])('whether a pod in phase %s holds slots', (phase, ended) => {
  expect(readPod(pod(undefined, { status: { phase } }))?.ended).toBe(ended);
});

test('a contradictory pod is recorded, with the reason why it cannot be scheduled', () => {
  const wrong = pod(undefined);
  (wrong.metadata as { annotations: object }).annotations = { 'nvidia-virtual/memory': 'much' };
  expect(readPod(wrong)).toMatchObject({
    demand: undefined,
    problem: expect.stringContaining('nvidia-virtual/memory is "much"'),
  });
});

test('a pod with very many mistakes is recorded with the first ones', () => {
  const annotations = Object.fromEntries(
    ['memory', 'cores', 'gpus', 'policy', 'mode', 'trace'].map((name) => [
      `nvidia-virtual/${name}`,
      Array.from({ length: 4 }, () => 'y'.repeat(900)).join(','),
    ]),
  );
  const { problem = '' } = readPod({ ...pod(undefined), metadata: { annotations } }) ?? {};
  expect(problem).toHaveLength(1000);
});

test('a pod that is being deleted counts as leaving, unless it is long overdue', () => {
  const deleted = (seconds: number) =>
    readPod(
      pod(undefined, { metadata: { deletionTimestamp: new Date(Date.now() + 1000 * seconds) } }),
    );
  expect([30, 0, -600].map((seconds) => isLeaving(deleted(seconds) as PodRecord))).toEqual([
    true,
    true,
    false,
  ]);
  expect(isLeaving(readPod(pod(undefined)) as PodRecord)).toBe(false);
});

test.each<[string, Record<string, string>, object, string | undefined]>([
  ['none', { app: 'a' }, {}, undefined],
  ['of Kubernetes', {}, { schedulingGroup: { podGroupName: 'g' } }, 'n g'],
  ['of Kueue', { 'kueue.x-k8s.io/pod-group-name': 'g' }, {}, 'n kueue.x-k8s.io/pod-group-name=g'],
  ['of a JobSet', { 'jobset.sigs.k8s.io/jobset-name': 'g' }, {}, expect.stringMatching(/=g$/)],
  ['of a plugin', { 'scheduling.x-k8s.io/pod-group': 'g' }, {}, expect.stringMatching(/=g$/)],
])('the group of a pod: %s', (_, labels, more, group) => {
  const spec = { containers: [container('main', 1)], ...more };
  expect(readPod({ metadata: { uid: 'u', namespace: 'n', labels }, spec })?.group).toEqual(group);
});

test.each([
  [[], false],
  [[{ kind: 'ReplicaSet', controller: true }], true],
  [[{ kind: 'ReplicaSet' }], false],
  [[{ kind: 'Node', controller: true }], false],
])('whether a pod with the owners %j is replaced by a controller', (owners, controlled) => {
  const ownerReferences = owners.map((owner) => ({
    ...{ apiVersion: 'v1', name: 'x', uid: 'x' },
    ...owner,
  }));
  const spec = { containers: [container('main', 1)] };
  expect(readPod({ metadata: { uid: 'u', ownerReferences }, spec })?.controlled).toBe(controlled);
});

test('of a pod with very many labels, few are kept in memory', () => {
  const labelled = (count: number) => {
    const labels = Array.from({ length: count }, (_, index) => [`k${index}`, '']);
    const { spec, ...rest } = pod(undefined);
    return readPod({ ...rest, spec, metadata: { labels: Object.fromEntries(labels) } } as V1Pod);
  };
  expect(Object.keys(labelled(200)?.labels ?? {})).toHaveLength(200);
  expect(Object.keys(labelled(90_000)?.labels ?? {})).toHaveLength(256);
});
