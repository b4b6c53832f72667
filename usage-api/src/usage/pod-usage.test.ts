import type { V1Pod } from '@kubernetes/client-node';
import type { NodeSnapshot } from '@nvidia-virtual/ledger';
import { snapshot } from '@nvidia-virtual/ledger/testing/snapshots';
import { readGpuRequest } from './gpu-request.js';
import { keepNode } from './node-usage.js';
import { podUsage } from './pod-usage.js';
import { type GpuPod, keepPod } from './pods.js';
import { SlotMap } from './slots.js';

const GIBIBYTE = 2 ** 30;
const INVENTORY = {
  version: 1 as const,
  gpus: [
    {
      uuid: 'GPU-1',
      name: 'X',
      memory: 8 * GIBIBYTE,
      slotMemory: GIBIBYTE / 2,
      slots: 10,
      mode: 'exclusive' as const,
      healthy: true,
    },
  ],
};

interface Shape {
  readonly node?: string;
  readonly annotations?: Record<string, string>;
  readonly status?: object;
  readonly spec?: object;
  readonly deleted?: boolean;
  readonly name?: string;
}

function gpuPod({
  node,
  annotations = {},
  status = {},
  spec = {},
  deleted = false,
  name = 'p',
}: Shape = {}): GpuPod {
  const limits = (slots: number) => ({
    resources: { limits: { 'nvidia-virtual/gpu': String(slots) } },
  });
  const metadata = {
    name,
    namespace: 'a',
    uid: 'u',
    annotations,
    ...(deleted && { deletionTimestamp: new Date(0) }),
  };
  const pod = {
    metadata,
    spec: { nodeName: node, containers: [{ name: 'main', ...limits(4) }], ...spec },
    status,
  };
  const kept = keepPod(pod as unknown as V1Pod);
  if (!kept) throw new Error('keepPod() dropped the pod');
  return kept;
}

function usage(shape: Shape, figures = true, podUid = 'u') {
  const pod = gpuPod(shape);
  const result = snapshot({ allocations: 1, sessions: 2, memory: 100 });
  const owned = result.allocations.map((one) => ({
    ...one,
    rate: undefined,
    specification: {
      ...one.specification,
      owner: { namespace: 'a', pod: 'p', podUid, container: 'main' },
    },
  })) as NodeSnapshot['allocations'];
  const node = {
    gpus: result.gpus,
    at: 1.7e12,
    allocations: owned.map((one) => ({ ...one, rate: undefined })),
  };
  return podUsage(pod, {
    gpuRequest: readGpuRequest(pod),
    figures: figures ? node : undefined,
    inventory: INVENTORY,
    trouble: undefined,
  });
}

const RUNNING = { phase: 'Running', containerStatuses: [{ name: 'main', state: { running: {} } }] };

test('a pod that uses its GPU is Active', () => {
  expect(usage({ node: 'n', status: RUNNING })).toMatchObject({
    state: 'Active',
    timestamp: '2023-11-14T22:13:20Z',
    containers: [
      {
        gpus: [{ uuid: 'GPU-1', index: 0 }],
        memory: { used: 200, peak: 200 },
        time: { share: 25, busySeconds: 0 },
        sessions: 2,
      },
    ],
  });
});

test('a static pod is matched by its mirror annotation, a pod of another name is not', () => {
  const annotations = { 'kubernetes.io/config.mirror': 'hash' };
  const used = (shape: Shape) =>
    usage({ node: 'n', status: RUNNING, ...shape }, true, 'hash').state;
  expect([used({ annotations }), used({}), used({ annotations, name: 'thief' })]).toEqual([
    'Active',
    'Idle',
    'Idle',
  ]);
});

test('before first use the expected quota follows the slots, and annotations can lower it', () => {
  const idle = (annotations: Record<string, string>) => {
    const pod = gpuPod({ node: 'n', status: RUNNING, annotations });
    const figures = { gpus: [], at: 0, allocations: [] };
    return podUsage(pod, {
      gpuRequest: readGpuRequest(pod),
      figures,
      inventory: INVENTORY,
      trouble: undefined,
    }).containers[0];
  };
  expect(idle({})).toMatchObject({
    memory: { quota: 2 * GIBIBYTE },
    time: { share: 40 },
    sessions: 0,
  });
  expect(idle({ 'nvidia-virtual/memory': '1Gi', 'nvidia-virtual/cores': '90' })).toMatchObject({
    ...{ memory: { quota: GIBIBYTE }, time: { share: 40 } },
  });
  const containers = { main: [{ gpu: 'GPU-1', slots: 4, taken: 6 }] };
  const assigned = JSON.stringify({ version: 1, containers });
  expect(
    idle({ 'nvidia-virtual/cores': '55', 'nvidia-virtual/assigned': assigned })?.time.share,
  ).toBe(55);
});

test.each<[string, Shape, string, string | undefined]>([
  ['no scheduler has seen', {}, 'Waiting', 'No scheduler has considered the pod yet.'],
  [
    'the scheduler cannot place',
    {
      status: {
        conditions: [
          { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes.' },
        ],
      },
    },
    'Waiting',
    'Unschedulable: 0/1 nodes.',
  ],
  [
    'waits for its image',
    {
      node: 'n',
      status: {
        containerStatuses: [
          {
            name: 'main',
            state: { waiting: { reason: 'ErrImagePull', message: 'no such image' } },
          },
        ],
      },
    },
    'Starting',
    'main: ErrImagePull: no such image',
  ],
  [
    'has a command that would control a terminal',
    {
      node: 'n',
      status: {
        containerStatuses: [
          {
            name: 'main',
            state: { waiting: { reason: 'RunContainerError', message: 'no `\u001b]0;a\u0007`' } },
          },
        ],
      },
    },
    'Starting',
    'main: RunContainerError: no `?]0;a?`',
  ],
  ['was just placed', { node: 'n' }, 'Starting', 'The kubelet is preparing the pod.'],
  ['is being deleted', { node: 'n', status: RUNNING, deleted: true }, 'Ending', undefined],
])('a pod that %s has its state and reason', (_, shape, state, message) => {
  const pod = gpuPod(shape);
  const result = podUsage(pod, {
    gpuRequest: readGpuRequest(pod),
    figures: { gpus: [], at: 0, allocations: [] },
    inventory: undefined,
    trouble: undefined,
  });
  expect([result.state, result.message]).toEqual([state, message]);
});

test('a pod has a message if its node is silent or its annotations are invalid', () => {
  expect(usage({ node: 'n', status: RUNNING }, false)).toMatchObject({
    state: 'Unknown',
    message:
      'Node n has not reported its GPUs recently. Check the nvidia-virtual pod on that node.',
  });
  const wrong = usage({
    node: 'n',
    status: RUNNING,
    annotations: { 'nvidia-virtual/memory': 'much' },
  });
  expect([wrong.slots, wrong.message]).toEqual([
    4,
    expect.stringContaining('nvidia-virtual/memory is "much"'),
  ]);
});

test('a pod with too many containers has a message and counts no slots', () => {
  const containers = Array.from({ length: 65 }, (_, index) => ({
    name: `c${index}`,
    resources: { limits: { 'nvidia-virtual/gpu': '1' } },
  }));
  const { slots, message } = usage({ node: 'n', status: RUNNING, spec: { containers } });
  expect([slots, message]).toEqual([0, expect.stringContaining('the limit is 64')]);
});

describe('a pod whose node reports', () => {
  const held = (...parts: Partial<NodeSnapshot['allocations'][number]['specification']>[]) =>
    parts.map((specification, index) => {
      const [one] = snapshot({ allocations: 1, sessions: 1 }).allocations;
      const owner = { namespace: 'a', pod: 'p', podUid: 'u', container: `c${index}` };
      return { ...one, specification: { ...one?.specification, owner, ...specification } };
    });
  const shown = (shape: Shape, allocations: readonly object[]) => {
    const containers = ['c0', 'c1'].map((name) => ({
      name,
      resources: { limits: { 'nvidia-virtual/gpu': '1' } },
    }));
    const pod = gpuPod({ node: 'n', status: RUNNING, spec: { containers }, ...shape });
    return podUsage(pod, {
      gpuRequest: readGpuRequest(pod),
      figures: { gpus: [], at: 0, allocations: allocations as never },
      inventory: undefined,
      trouble: undefined,
    });
  };
  const asked = { annotations: { 'nvidia-virtual/suspended': 'true' } };
  const byPod = { suspended: true, suspendedBy: ['pod'] as const };

  test('that all its allocations are suspended is Suspended', () => {
    const pod = shown(asked, held(byPod, byPod));
    expect([pod.state, pod.message]).toEqual(['Suspended', undefined]);
    expect(pod.containers.map(({ suspendedBy }) => suspendedBy)).toEqual([['pod'], ['pod']]);
  });

  test('that some of them are not is Active, with the sentence of the node', () => {
    const [first, second] = held(byPod, {});
    const refused = { ...second, suspensionRefused: 'It cannot stop now.' };
    const pod = shown(asked, [first as object, refused]);
    expect([pod.state, pod.message]).toEqual(['Active', 'It cannot stop now.']);
  });

  test('where its memory is has that in each container', () => {
    const [one] = held(byPod);
    const pod = shown(asked, [{ ...one, state: 'out', outBytes: 4096 }]);
    expect(pod.containers[0]?.memory).toMatchObject({ state: 'out', out: 4096 });
  });

  test('that waits for room on an oversubscribed GPU is Active', () => {
    expect(shown({}, held({ suspended: true, suspendedBy: ['policy'] })).state).toBe('Active');
  });

  test('no allocation is Suspended if it asks for that', () => {
    expect(shown(asked, []).state).toBe('Suspended');
    expect(shown({}, []).state).toBe('Idle');
  });

  test('that an administrator suspended it has a message', () => {
    const pod = shown({}, held({ suspended: true, suspendedBy: ['node'] }));
    expect([pod.state, pod.message]).toEqual([
      'Suspended',
      'An administrator of node n suspended the pod, and can resume it.',
    ]);
  });
});

test('keepPod() drops pods that request no slots or have ended', () => {
  const spec = {
    containers: [{ name: 'main', resources: { limits: { 'nvidia-virtual/gpu': '1' } } }],
  };
  expect(keepPod({ spec: { containers: [{ name: 'main' }] } } as V1Pod)).toBeUndefined();
  expect(keepPod({ spec, status: { phase: 'Succeeded' } } as unknown as V1Pod)).toBeUndefined();
});

test('keepPod() keeps little of a pod that a tenant has made as large as it can', () => {
  const many = (count: number) => Array.from({ length: count }, (_, index) => `k${index}`);
  const limits = { 'nvidia-virtual/gpu': '1' };
  const others = Object.fromEntries(many(40_000).map((name) => [`a.b/${name}`, '0']));
  const pod = {
    metadata: { name: 'p', labels: Object.fromEntries(many(90_000).map((name) => [name, ''])) },
    spec: {
      containers: [
        { name: 'main', resources: { limits: { ...limits, ...others } } },
        ...many(20_000).map((name) => ({ name })),
      ],
    },
  };
  const kept = keepPod(pod as unknown as V1Pod);
  expect(kept?.spec?.containers).toEqual([{ name: 'main', resources: { limits } }]);
  expect(JSON.stringify(kept).length).toBeLessThan(5000);
});

describe('a pod that moves', () => {
  const shown = (assigned: object, figures: boolean) => {
    const annotations = { 'nvidia-virtual/assigned': JSON.stringify({ version: 1, ...assigned }) };
    const { containers } = usage({ node: 'n', status: RUNNING, annotations }, figures);
    return [containers[0]?.gpus.map(({ uuid }) => uuid), containers[0]?.reserved];
  };
  const on = (gpu: string) => ({ containers: { main: [{ gpu, slots: 4 }] } });

  test('is shown on both GPUs while the figures of its node are missing', () => {
    const assigned = { ...on('GPU-2'), former: 'GPU-1', move: 1 };
    expect(shown(assigned, false)).toEqual([['GPU-2', 'GPU-1'], undefined]);
  });

  test('has its new GPU reserved until it is there', () => {
    const assigned = { ...on('GPU-2'), former: 'GPU-1', move: 1 };
    expect(shown(assigned, true)).toEqual([['GPU-1'], ['GPU-2']]);
  });

  test('has its former GPU reserved until all its programs have left', () => {
    const assigned = { ...on('GPU-1'), former: 'GPU-2', move: 1 };
    expect(shown(assigned, true)).toEqual([['GPU-1'], ['GPU-2']]);
  });

  test('has nothing reserved afterwards', () => {
    expect(shown({ ...on('GPU-1'), move: 1 }, true)).toEqual([['GPU-1'], undefined]);
  });
});

test('slots are counted on the assigned GPUs, and init containers release theirs', () => {
  const resources = { limits: { 'nvidia-virtual/gpu': '6' } };
  const assigned = {
    version: 1,
    containers: {
      first: [{ gpu: 'GPU-2', slots: 6 }],
      main: [{ gpu: 'GPU-1', slots: 4, taken: 5 }],
    },
  };
  const annotations = { 'nvidia-virtual/assigned': JSON.stringify(assigned) };
  const pod = gpuPod({
    node: 'n',
    spec: { initContainers: [{ name: 'first', resources }] },
    annotations,
  });
  const slots = new SlotMap();
  slots.add(pod, readGpuRequest(pod), undefined);
  expect([slots.total, slots.on('GPU-1'), slots.on('GPU-2')]).toEqual([6, 5, 6]);
});

test('a sidecar holds its slots beside later init containers, as Kubernetes counts them', () => {
  const asking = (name: string, slots: string, more: object = {}) => ({
    name,
    resources: { limits: { 'nvidia-virtual/gpu': slots } },
    ...more,
  });
  const spec = {
    initContainers: [asking('sidecar', '1', { restartPolicy: 'Always' }), asking('first', '5')],
    containers: [asking('main', '1')],
  };
  const onOne = (count: number) => [{ gpu: 'GPU-1', slots: count }];
  const assigned = {
    version: 1,
    containers: { sidecar: onOne(1), first: onOne(5), main: onOne(1) },
  };
  const pod = gpuPod({
    node: 'n',
    spec,
    annotations: { 'nvidia-virtual/assigned': JSON.stringify(assigned) },
  });
  const slots = new SlotMap();
  slots.add(pod, readGpuRequest(pod), undefined);
  const result = podUsage(pod, {
    gpuRequest: readGpuRequest(pod),
    figures: undefined,
    inventory: INVENTORY,
    trouble: undefined,
  });
  expect([result.slots, slots.total, slots.on('GPU-1')]).toEqual([6, 6, 6]);
});

test('an assignment that is not JSON is ignored', () => {
  const pod = gpuPod({ node: 'n', annotations: { 'nvidia-virtual/assigned': '{' } });
  const slots = new SlotMap();
  slots.add(pod, readGpuRequest(pod), undefined);
  expect([slots.total, slots.on('GPU-1')]).toEqual([4, 0]);
});

test('a quantity of 1k slots is read as a thousand', () => {
  const slots = { 'nvidia-virtual/gpu': '1k' };
  const pod = {
    metadata: { name: 'p', uid: 'u' },
    spec: { containers: [{ name: 'main', resources: { limits: slots } }] },
  };
  expect(keepPod(pod as unknown as V1Pod)).toBeDefined();
  expect(
    keepNode({ metadata: { name: 'n' }, status: { capacity: slots, allocatable: slots } }),
  ).toMatchObject({ allocatable: 1000 });
});
