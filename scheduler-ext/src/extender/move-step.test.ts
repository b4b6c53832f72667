import type { Assignment, Inventory, InventoryGpu } from '@nvidia-virtual/kube-common/assignment';
import { NodeGpus } from '../cluster/node-gpus.js';
import type { PodRecord } from '../cluster/pod.js';
import { Demand } from '../placement/demand.js';
import { demandOf, gpuOf, needOf, podOf } from '../testing/nodes.js';
import { nextStep } from './move-step.js';

const ON_A: Assignment = { version: 1, containers: { main: [{ gpu: 'GPU-a', slots: 4 }] } };
const TO_B: Assignment = {
  version: 1,
  containers: { main: [{ gpu: 'GPU-b', slots: 4 }] },
  ...{ former: 'GPU-a', move: 1 },
};

function nodeOf(more: Partial<Inventory> = {}, drained?: string): NodeGpus {
  const node = new NodeGpus('node');
  const gpus = [gpuOf('GPU-a'), gpuOf('GPU-b'), gpuOf('GPU-c', { name: 'NVIDIA H100' })];
  node.setInventory(JSON.stringify({ version: 1, gpus, movable: true, ...more }), drained);
  return node;
}

function podOn(assignment: Assignment | undefined, more: Partial<PodRecord> = {}): PodRecord {
  const uuids = Object.values(assignment?.containers ?? {}).flat();
  const held = [...uuids.map(({ gpu }) => gpu), ...(assignment?.former ? [assignment.former] : [])];
  const holding = new Map(held.map((uuid) => [uuid, 4]));
  return podOf('p', { node: 'node', slots: 4, assignment, holding, ...more });
}

/** The step of a pod that holds its slots. */
function step(pod: PodRecord, node = nodeOf()) {
  node.hold(pod);
  const next = nextStep(pod, node);
  if (next === undefined || 'refusal' in next) return next?.refusal;
  const { 'nvidia-virtual/assigned': assigned, ...others } = next.annotations;
  const { second } = next;
  return {
    ...(assigned && { assigned: JSON.parse(assigned) }),
    ...others,
    ...(second && { second }),
  };
}

const REMOVED = { 'nvidia-virtual/move-to': null };

test('a pod that asks for another GPU is assigned to it, and keeps the former one', () => {
  expect(step(podOn(ON_A, { moveTo: 'gpu-B' }))).toEqual({
    assigned: TO_B,
    second: new Map([['GPU-b', 4]]),
  });
});

test('init containers are assigned to the other GPU, too, with what they take', () => {
  const containers = {
    one: [{ gpu: 'GPU-a', slots: 1, taken: 3 }],
    two: [{ gpu: 'GPU-a', slots: 2 }],
  };
  const next = step(podOn({ version: 1, containers, move: 4 }, { moveTo: 'GPU-b' }));
  expect(next).toMatchObject({
    assigned: {
      containers: {
        one: [{ gpu: 'GPU-b', slots: 1, taken: 3 }],
        two: [{ gpu: 'GPU-b', slots: 2 }],
      },
      ...{ former: 'GPU-a', move: 5 },
    },
  });
});

test('the former GPU is dropped when the node reports the arrival by that move', () => {
  const arrived = (move: number) => nodeOf({ arrivals: [{ pod: 'p', move }] });
  const { former: _, ...settled } = TO_B;
  expect(step(podOn(TO_B, { moveTo: 'GPU-b' }), arrived(0))).toBeUndefined();
  expect(step(podOn(TO_B, { moveTo: 'GPU-b' }), arrived(1))).toEqual({
    assigned: settled,
    ...REMOVED,
  });
  expect(step(podOn(TO_B, { moveTo: 'GPU-a' }), arrived(1))).toEqual({ assigned: settled });
});

test('a pod that moves goes back if its user asks for the former GPU', () => {
  expect(step(podOn(TO_B, { moveTo: 'GPU-a' }))).toEqual({
    assigned: { ...ON_A, former: 'GPU-b', move: 2 },
  });
  expect(step(podOn(TO_B))).toBeUndefined();
  expect(step(podOn(TO_B, { moveTo: 'GPU-c' }))).toBeUndefined();
});

test('a pod that has not arrived in time goes back', () => {
  const pod = podOn(TO_B, { moveTo: 'GPU-b' });
  const limits = { isOverdue: true, rests: true };
  expect(nextStep(pod, nodeOf(), limits)).toMatchObject({
    overdue: 'GPU-b',
    annotations: REMOVED,
  });
  const arrived = nodeOf({ arrivals: [{ pod: 'p', move: 1 }] });
  expect(nextStep(pod, arrived, limits)).not.toHaveProperty('overdue');
});

test('a pod that rests neither begins a move nor exchanges its GPUs', () => {
  const rests = { isOverdue: false, rests: true };
  const asking = podOn(ON_A, { moveTo: 'GPU-b' });
  expect(nextStep(asking, nodeOf(), rests)).toMatchObject({
    refusal: expect.stringContaining('it held slots of two GPUs'),
  });
  expect(nextStep(podOn(ON_A), nodeOf({}, 'GPU-a'), rests)).toHaveProperty('refusal');
  expect(nextStep(podOn(TO_B, { moveTo: 'GPU-a' }), nodeOf(), rests)).toBeUndefined();
});

test('a move ends while its pod is being deleted', () => {
  const pod = podOn(TO_B, { leavesAt: Date.now() + 1e12 });
  const { former: _, ...settled } = TO_B;
  expect(step(pod, nodeOf({ arrivals: [{ pod: 'p', move: 1 }] }))).toEqual({ assigned: settled });
  const limits = { isOverdue: true, rests: true };
  expect(nextStep(pod, nodeOf(), limits)).toHaveProperty('overdue', 'GPU-b');
});

test('a pod goes back if its new GPU is lost before it has arrived', () => {
  const lost = (...uuids: string[]) =>
    nodeOf({
      gpus: ['GPU-a', 'GPU-b'].map((uuid) => gpuOf(uuid, { healthy: !uuids.includes(uuid) })),
    });
  const back = { assigned: { ...ON_A, former: 'GPU-b', move: 2 } };
  expect(step(podOn(TO_B), lost('GPU-b'))).toEqual(back);
  expect(step(podOn(TO_B), nodeOf({ gpus: [gpuOf('GPU-a')] }))).toEqual(back);
  expect(step(podOn(TO_B), lost('GPU-a'))).toBeUndefined();
  expect(step(podOn(TO_B), lost('GPU-a', 'GPU-b'))).toBeUndefined();
});

test('a pod that is there already loses the annotation', () => {
  expect(step(podOn(ON_A, { moveTo: 'GPU-a' }))).toEqual(REMOVED);
});

test('slots that are reserved for the move already do not prevent it', () => {
  const node = nodeOf();
  node.hold({ uid: 'q', priority: 0, holding: new Map([['GPU-b', 6]]), demand: undefined });
  const pod = podOn(ON_A, { moveTo: 'GPU-b' });
  node.hold({ ...pod, holding: new Map([...(pod.holding ?? []), ['GPU-b', 4]]) });
  expect(nextStep(pod, node)).toMatchObject({ second: new Map([['GPU-b', 4]]) });
});

const SEVERAL: Assignment = {
  version: 1,
  containers: { main: ['GPU-a', 'GPU-c'].map((gpu) => ({ gpu, slots: 2 })) },
};
const EXCLUDING = new Demand({
  ...{ containers: [needOf('main', 4)], gpuTypes: [], placement: undefined },
  gpuUuids: ['!GPU-b'],
});
const besideA = (more: Partial<InventoryGpu>) => ({
  gpus: [gpuOf('GPU-a'), gpuOf('GPU-b', more)],
});

interface Refused {
  readonly reason: string;
  readonly assignment?: Assignment | undefined;
  readonly pod?: Partial<PodRecord>;
  readonly inventory?: Partial<Inventory>;
}

test.each<Refused>([
  { reason: 'our scheduler has not placed it', assignment: undefined },
  { reason: 'it has several GPUs', assignment: SEVERAL },
  { reason: 'node node has no such GPU', pod: { moveTo: 'GPU-x' } },
  { reason: 'programs of node node cannot move', inventory: { movable: false } },
  {
    reason: 'that GPU is another model: NVIDIA H100, not NVIDIA H200',
    pod: { moveTo: 'GPU-c' },
  },
  { reason: 'that GPU is unhealthy', inventory: besideA({ healthy: false }) },
  { reason: 'node node no longer has its GPU', inventory: { gpus: [gpuOf('GPU-b')] } },
  { reason: 'concurrent mode', inventory: besideA({ mode: 'concurrent' }) },
  { reason: 'oversubscribed', inventory: besideA({ mostSlots: 5 }) },
  {
    reason: 'several of its containers have a GPU',
    pod: { demand: demandOf(needOf('one', 1), needOf('two', 1)) },
  },
  { reason: 'gpu-uuid excludes that GPU', pod: { demand: EXCLUDING } },
])('a pod stays: $reason', ({ reason, pod, inventory, ...rest }) => {
  const assignment = 'assignment' in rest ? rest.assignment : ON_A;
  const moving = podOn(assignment, { moveTo: 'GPU-b', ...pod });
  expect(step(moving, nodeOf(inventory))).toContain(reason);
});

test('a pod stays if other pods hold, or were promised, the slots', () => {
  const node = nodeOf();
  node.hold({ uid: 'q', priority: 0, holding: new Map([['GPU-b', 5]]), demand: undefined });
  node.promise({ uid: 'r', priority: 0, holding: new Map([['GPU-b', 2]]), demand: undefined });
  expect(step(podOn(ON_A, { moveTo: 'GPU-b' }), node)).toBe(
    '3 of its slots are free, and the pod has 4',
  );
});

test.each<Partial<PodRecord>>([{ ended: true }, { leavesAt: 1 }])(
  'a pod that ends is left alone: %j',
  (more) => {
    expect(step(podOn(ON_A, { moveTo: 'GPU-b', ...more }))).toBeUndefined();
  },
);

describe('a drained GPU', () => {
  const gpus = ['GPU-a', 'GPU-b', 'GPU-d', 'GPU-e'].map((uuid) => gpuOf(uuid));
  const drained = (more: Partial<Inventory> = {}) => nodeOf({ gpus, ...more }, 'gpu-A, GPU-e');

  test('its pods go to the fullest other GPU with room', () => {
    const node = drained();
    node.hold({ uid: 'q', priority: 0, holding: new Map([['GPU-d', 3]]), demand: undefined });
    expect(step(podOn(ON_A), node)).toMatchObject({ second: new Map([['GPU-d', 4]]) });
    expect(step(podOn(TO_B), node)).toBeUndefined();
  });

  test.each(['GPU-x', 'GPU-e', 'GPU-b'])('its pods leave, although they ask for %s', (moveTo) => {
    const node = drained();
    node.hold({ uid: 'q', priority: 0, holding: new Map([['GPU-b', 10]]), demand: undefined });
    expect(step(podOn(ON_A, { moveTo }), node)).toMatchObject({
      second: new Map([['GPU-d', 4]]),
    });
  });

  test('a pod goes on to the GPU that it has reserved', () => {
    const node = drained();
    node.hold({ uid: 'q', priority: 0, holding: new Map([['GPU-d', 3]]), demand: undefined });
    const pod = podOn(ON_A);
    node.hold({ ...pod, holding: new Map([...(pod.holding ?? []), ['GPU-b', 4]]) });
    expect(nextStep(pod, node)).toMatchObject({ second: new Map([['GPU-b', 4]]) });
  });

  test('a pod neither moves nor goes back to it', () => {
    expect(
      step(podOn({ ...ON_A, containers: TO_B.containers }, { moveTo: 'GPU-a' }), drained()),
    ).toBe('that GPU is drained');
    expect(step(podOn(TO_B, { moveTo: 'GPU-a' }), drained())).toBeUndefined();
  });

  test('a pod with several GPUs stays, and is told so', () => {
    const pod = podOn(SEVERAL);
    const node = drained();
    node.hold(pod);
    expect(nextStep(pod, node)).toEqual({
      ...{ gpu: 'GPU-a', refusal: 'it has several GPUs', drained: true },
    });
    expect(step(podOn(SEVERAL), nodeOf())).toBeUndefined();
  });

  test('a pod that nothing else can take stays, with the reason for each GPU', () => {
    const node = drained();
    node.hold({ uid: 'q', priority: 0, holding: new Map([['GPU-d', 7]]), demand: undefined });
    node.hold({ uid: 'r', priority: 0, holding: new Map([['GPU-b', 8]]), demand: undefined });
    expect(step(podOn(ON_A), node)).toBe(
      'GPU GPU-b: 2 of its slots are free, and the pod has 4; ' +
        'GPU GPU-d: 3 of its slots are free, and the pod has 4; GPU GPU-e: that GPU is drained',
    );
    expect(step(podOn(ON_A), drained({ movable: false }))).toMatch(/^programs of node node cannot/);
    expect(step(podOn(ON_A), drained({ gpus: [gpuOf('GPU-a')] }))).toBe(
      'node node has no other GPU',
    );
  });
});
