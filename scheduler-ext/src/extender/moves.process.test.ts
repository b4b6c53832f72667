import { ApiError } from '@nvidia-virtual/kube-common/api-server';
import type { Assignment } from '@nvidia-virtual/kube-common/assignment';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { pino } from 'pino';
import { Cluster } from '../cluster/cluster.js';
import type { PodRecord } from '../cluster/pod.js';
import { gpuOf, inventoryOf, podOf } from '../testing/nodes.js';
import { Moves } from './moves.js';

const ON_A: Assignment = { version: 1, containers: { main: [{ gpu: 'GPU-a', slots: 4 }] } };
const MOVABLE = JSON.stringify({
  ...JSON.parse(inventoryOf(gpuOf('GPU-a'), gpuOf('GPU-b'))),
  movable: true,
});

let cluster: Cluster;
let moves: Moves;
let state: 'leads' | 'follows' | 'unknown';
/** Versions of pods for which an assignment was written. */
let written: string[];
let told: string[];
/** Names of their Events. */
let events: Set<string>;
/** JSON patches. */
let replaced: unknown[];
/** Answers of the API server; none: it takes the write. */
let errors: ApiError[];
let looks: number;
const leadership = {
  state: async () => {
    looks++;
    return state;
  },
};

async function request(wanted: { path: string; body?: unknown }): Promise<never> {
  const body = wanted.body as { message: string; metadata: { resourceVersion: string } };
  if (wanted.path.includes('/events/')) {
    told.push(body.message);
    events.add(wanted.path);
  } else if (Array.isArray(wanted.body)) replaced.push(wanted.body);
  else {
    written.push(body.metadata.resourceVersion);
    const error = errors.shift();
    if (error) throw error;
  }
  return undefined as never;
}

const pod = (more: Partial<PodRecord> = {}) =>
  podOf('p', {
    ...{ node: 'node', slots: 4, assignment: ON_A, holding: new Map([['GPU-a', 4]]) },
    ...{ moveTo: 'GPU-b', ...more },
  });

const used = () => cluster.node('node')?.gpus.map((gpu) => gpu.used);

function begin(deadlineMs?: number): void {
  moves = new Moves({
    ...{ api: { request }, cluster, leadership, condition: () => undefined },
    ...{ everyMs: 10, logger: pino({ level: 'silent' }) },
    ...(deadlineMs !== undefined && { deadlineMs }),
  });
}

/** After so many more looks at the pods. */
async function looked(): Promise<void> {
  const before = looks;
  await until(() => looks > before + 3);
}

beforeEach(() => {
  [state, written, told, errors, looks] = ['leads', [], [], [], 0];
  [replaced, events] = [[], new Set()];
  cluster = new Cluster();
  cluster.putNode('node', MOVABLE);
  cluster.putPod(pod());
  begin();
});
afterEach(() => moves.stop());

test('both GPUs are held until the watch shows the assignment', async () => {
  await until(() => written.length > 0);
  expect(used()).toEqual([4, 4]);
  const to = { main: [{ gpu: 'GPU-b', slots: 4 }] };
  const assignment = { ...ON_A, containers: to, former: 'GPU-a', move: 1 };
  const both = new Map([
    ['GPU-a', 4],
    ['GPU-b', 4],
  ]);
  cluster.putPod(pod({ version: '2', assignment, holding: both }));
  expect(used()).toEqual([4, 4]);
  cluster.putPod(pod({ version: '3', moveTo: undefined, holding: new Map([['GPU-b', 4]]) }));
  expect(used()).toEqual([0, 4]);
});

test.each([undefined, 500, 409])('after status %s, the slots stay reserved', async (status) => {
  errors = [new ApiError('what happened is unknown', status)];
  await until(() => written.length >= 2);
  expect(written.every((version) => version === '1')).toBe(true);
  expect(used()).toEqual([4, 4]);
  // Someone else has changed the pod, so no write has taken effect.
  moves.stop();
  cluster.putPod(pod({ version: '2', moveTo: undefined }));
  expect(used()).toEqual([4, 0]);
});

test('a write that the API server refuses frees the slots', async () => {
  errors = Array.from({ length: 999 }, () => new ApiError('forbidden', 403));
  await until(() => written.length >= 2);
  await looked();
  expect(used()).toEqual([4, 0]);
});

test('a refused write is told to the pod, and tried again with backoff', async () => {
  errors = Array.from({ length: 999 }, () => new ApiError('annotations are too long', 422));
  await until(() => told.length > 0);
  expect(told[0]).toContain(
    'Pod default/p does not move to GPU GPU-b: the API server refuses to change its annotations: ' +
      'annotations are too long',
  );
  for (let times = 0; times < 5; times++) await looked();
  expect(written.length).toBeLessThan(looks / 2);
  expect(told).toHaveLength(1);
});

test('the extender beside a follower writes nothing, and drops its reservations', async () => {
  errors = Array.from({ length: 999 }, () => new ApiError('no answer', undefined));
  await until(() => written.length > 0);
  state = 'unknown';
  await looked();
  expect(used()).toEqual([4, 4]);
  state = 'follows';
  await until(() => used()?.[1] === 0);
  const { length } = written;
  await looked();
  expect(written).toHaveLength(length);
});

test('a refusal is an event, once', async () => {
  moves.stop();
  cluster.putNode('node', inventoryOf(gpuOf('GPU-a'), gpuOf('GPU-b')));
  begin();
  await looked();
  expect(told).toEqual([
    'Pod default/p does not move to GPU GPU-b: programs of node node cannot move: set ' +
      'node.movable in the values of the chart, and node.hostMemory to more than 0. The ' +
      'scheduler tries again as long as the pod has the annotation nvidia-virtual/move-to.',
  ]);
});

test('a pod that asks for another GPU all the time has one event, and few writes', async () => {
  // It is looked at while the other one asks for nothing.
  cluster.putPod({ ...pod({ moveTo: 'GPU-x' }), uid: 'q', name: 'q' });
  for (let time = 0; time < 20; time++) {
    cluster.putPod(pod({ moveTo: `GPU-${time}` }));
    await looked();
    cluster.putPod(pod({ moveTo: undefined }));
    await looked();
  }
  const ofOther = told.filter((text) => text.includes('default/q'));
  expect([events.size, ofOther.length, told.length]).toEqual([2, 1, 11]);
});

test('a pod that does not arrive in time goes back, and is told so', async () => {
  moves.stop();
  begin(1);
  const to = { main: [{ gpu: 'GPU-b', slots: 4 }] };
  cluster.putPod(pod({ assignment: { ...ON_A, containers: to, former: 'GPU-a', move: 1 } }));
  await until(() => told.length > 0);
  expect(written).not.toHaveLength(0);
  expect(told[0]).toContain('Pod default/p has not moved to GPU GPU-b in time, and goes back');
});

test('a pod that changes all the time keeps no slots of its former GPU', async () => {
  moves.stop();
  errors = [new ApiError('the object has been modified', 409)];
  const containers = { main: [{ gpu: 'GPU-b', slots: 4 }] };
  const assignment = { version: 1, containers, former: 'GPU-a', move: 1 } as const;
  const assignmentText = JSON.stringify(assignment);
  cluster.putNode(
    'node',
    JSON.stringify({
      ...JSON.parse(MOVABLE),
      arrivals: [{ pod: 'p', move: 1 }],
    }),
  );
  cluster.putPod(pod({ assignment, assignmentText }));
  begin();
  await until(() => replaced.length > 0);
  const path = '/metadata/annotations/nvidia-virtual~1assigned';
  expect(replaced[0]).toEqual([
    { op: 'test', path: '/metadata/uid', value: 'p' },
    { op: 'test', path, value: assignmentText },
    { op: 'replace', path, value: JSON.stringify({ version: 1, containers, move: 1 }) },
  ]);
});

test('a pod that is deleted during its move holds nothing', async () => {
  await until(() => written.length > 0);
  cluster.removePod('p');
  expect(used()).toEqual([0, 0]);
});
