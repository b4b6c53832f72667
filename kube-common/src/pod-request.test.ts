import type { V1Container, V1Pod } from '@kubernetes/client-node';
import {
  type ContainerRequest,
  containersOf,
  type PodRequestError,
  peak,
  readPodRequest,
} from './pod-request.js';

function container(name: string, slots?: string, more: Partial<V1Container> = {}): V1Container {
  return {
    name,
    ...(slots !== undefined && { resources: { limits: { 'nvidia-virtual/gpu': slots } } }),
    ...more,
  };
}

function pod(
  annotations: Record<string, string>,
  containers = [container('main', '4')],
  initContainers: V1Container[] = [],
): V1Pod {
  return { metadata: { annotations }, spec: { containers, initContainers } };
}

function requestOf(annotations: Record<string, string>): ContainerRequest | undefined {
  return readPodRequest(pod(annotations))?.containers[0];
}

function problemsOf(subject: V1Pod): readonly string[] {
  try {
    readPodRequest(subject);
    return [];
  } catch (error) {
    return (error as PodRequestError).problems;
  }
}

test('readPodRequest() returns undefined for a pod that requests no slots', () => {
  expect(readPodRequest(pod({}, [container('main'), container('other', '0')]))).toBeUndefined();
  expect(readPodRequest({})).toBeUndefined();
});

test('readPodRequest() leaves unset values undefined', () => {
  expect(readPodRequest(pod({}))).toEqual({
    containers: [{ container: 'main', init: false, slots: 4, gpus: 1 }],
    gpuTypes: [],
    gpuUuids: [],
  });
});

test('readPodRequest() reads every annotation', () => {
  const annotations = {
    'nvidia-virtual/memory': '8Gi',
    'nvidia-virtual/cores': '25',
    'nvidia-virtual/gpus': '2',
    'nvidia-virtual/policy': 'fixed',
    'nvidia-virtual/priority': '-5',
    'nvidia-virtual/mode': 'exclusive',
    'nvidia-virtual/latency': 'low',
    'nvidia-virtual/trace': 'summary',
    'nvidia-virtual/gpu-type': 'H200, A100 ',
    'nvidia-virtual/gpu-uuid': 'GPU-1,GPU-2',
  };
  expect(readPodRequest(pod(annotations))).toEqual({
    containers: [
      {
        container: 'main',
        init: false,
        slots: 4,
        gpus: 2,
        memory: 8 * 2 ** 30,
        cores: 25,
        policy: 'fixed',
        priority: -5,
        mode: 'exclusive',
        latency: 'low',
        trace: 'summary',
      },
    ],
    gpuTypes: ['H200', 'A100'],
    gpuUuids: ['GPU-1', 'GPU-2'],
  });
});

test('number 22: init containers, sidecars and containers, in start order', () => {
  const init = [
    container('prepare', '2'),
    container('sidecar', '1', { restartPolicy: 'Always' }),
    container('nothing'),
  ];
  const subject = pod({}, [container('main', '4'), container('other')], init);
  expect(containersOf(subject)).toEqual([
    { container: 'prepare', init: true, slots: 2 },
    { container: 'sidecar', init: false, slots: 1 },
    { container: 'nothing', init: true, slots: 0 },
    { container: 'main', init: false, slots: 4 },
    { container: 'other', init: false, slots: 0 },
  ]);
  expect(readPodRequest(subject)?.containers.map((one) => one.container)).toEqual([
    'prepare',
    'sidecar',
    'main',
  ]);
});

test.each([
  ['containers add up', '4 3', 7],
  ['an init container releases its slots to later containers', '6i 4', 6],
  ['a sidecar started before an init container keeps its slots', '1 5i 1', 6],
  ['a sidecar started after it reuses its slots', '5i 1 1', 5],
])('peak(): %s (%s)', (_, containers, expected) => {
  expect(
    peak(
      containers
        .split(' ')
        .map((text) => ({ slots: Number.parseInt(text, 10), init: text.endsWith('i') })),
    ),
  ).toBe(expected);
});

test('readPodRequest() reads a value for one container and another for the rest', () => {
  const containers = [container('main', '2'), container('side', '2'), container('third', '2')];
  const request = readPodRequest(
    pod({ 'nvidia-virtual/memory': '8Gi,side=1Gi, third = 2Gi' }, containers),
  );
  expect(request?.containers.map(({ memory = 0 }) => memory / 2 ** 30)).toEqual([8, 1, 2]);
  const some = readPodRequest(pod({ 'nvidia-virtual/cores': 'side=10' }, containers));
  expect(some?.containers.map(({ cores }) => cores)).toEqual([undefined, 10, undefined]);
});

test('readPodRequest() reads a thousand slots as the API server writes them', () => {
  expect(readPodRequest(pod({}, [container('main', '1k')]))?.containers[0]?.slots).toBe(1000);
});

test('readPodRequest() uses requests if limits are missing', () => {
  const asking: V1Container = {
    name: 'main',
    resources: { requests: { 'nvidia-virtual/gpu': '3' } },
  };
  expect(readPodRequest(pod({}, [asking]))?.containers[0]?.slots).toBe(3);
});

test.each([
  ['nvidia-virtual/memory', 'much', 'must be a Kubernetes quantity above 0'],
  ['nvidia-virtual/memory', '0', 'must be a Kubernetes quantity above 0'],
  ['nvidia-virtual/memory', '', 'must be a Kubernetes quantity above 0'],
  ['nvidia-virtual/memory', '8Gi,,1Gi', 'but "" must be'],
  ['nvidia-virtual/cores', '0', 'must be a whole percentage from 1 to 100'],
  ['nvidia-virtual/cores', '25%', 'must be a whole percentage from 1 to 100'],
  ['nvidia-virtual/gpus', '0', 'must be a whole number from 1 to 64'],
  ['nvidia-virtual/gpus', '65', 'must be a whole number from 1 to 64'],
  ['nvidia-virtual/gpus', '3', 'requests 4 nvidia-virtual/gpu over 3 GPUs'],
  ['nvidia-virtual/policy', 'Burst', 'must be burst or fixed'],
  ['nvidia-virtual/priority', '101', 'must be a whole number from -100 to 100'],
  ['nvidia-virtual/priority', '-101', 'must be a whole number from -100 to 100'],
  ['nvidia-virtual/priority', '+1', 'must be a whole number from -100 to 100'],
  ['nvidia-virtual/priority', '1e1', 'must be a whole number from -100 to 100'],
  ['nvidia-virtual/priority', '', 'must be a whole number from -100 to 100'],
  ['nvidia-virtual/mode', 'mps', 'must be exclusive or concurrent'],
  ['nvidia-virtual/latency', '1ms', 'must be low'],
  ['nvidia-virtual/latency', 'low\0', 'contains U+0000'],
  ['nvidia-virtual/latency', 'low,other=low', 'names container other'],
  ['nvidia-virtual/trace', 'all', 'must be summary'],
  [
    'nvidia-virtual/cores',
    'other=5',
    'names container other, which requests no nvidia-virtual/gpu. Containers that do: main',
  ],
])('%s: %j is refused', (annotation, value, said) => {
  expect(problemsOf(pod({ [annotation]: value }))).toEqual([expect.stringContaining(said)]);
});

test.each([
  'memory',
  'cores',
  'gpus',
  'policy',
  'priority',
  'mode',
  'latency',
  'trace',
  'gpu-type',
  'gpu-uuid',
])('nvidia-virtual/%s has a limit of length', (name) => {
  const annotation = `nvidia-virtual/${name}`;
  expect(problemsOf(pod({ [annotation]: 'x'.repeat(4097) }))).toEqual([
    `${annotation} has 4097 characters; the limit is 4096.`,
  ]);
});

test.each([
  ['\uFEFF', 'FEFF'],
  ['\u0085', '0085'],
  ['\u00A0', '00A0'],
  ['\n', '000A'],
  ['\u007F', '007F'],
  ['\u{1F600}', '1F600'],
])('%j is in no annotation', (character, code) => {
  expect(problemsOf(pod({ 'nvidia-virtual/gpu-type': `${character}!T4` }))).toEqual([
    `nvidia-virtual/gpu-type contains U+${code}, which is not a printable ASCII character: ` +
      'remove it.',
  ]);
});

test('the number of reported problems and of listed GPUs is limited', () => {
  const problems = problemsOf(
    pod({ 'nvidia-virtual/memory': ','.repeat(4096), 'nvidia-virtual/gpu-type': 'A,'.repeat(65) }),
  );
  expect(problems).toHaveLength(5);
  expect(problems.join('').length).toBeLessThan(2000);
  expect(problems).toContain('nvidia-virtual/gpu-type lists 65 names; the limit is 64.');
});

test('the number of containers that request slots is limited, init containers included', () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, index) => container(`c${index}`, '1'));
  const idle = [container('idle'), container('idler', '0')];
  expect(problemsOf(pod({}, [...many(1), ...idle], many(63)))).toEqual([]);
  expect(problemsOf(pod({ 'nvidia-virtual/gpus': '3' }, many(1), many(64)))).toEqual([
    '65 containers of the pod request nvidia-virtual/gpu; the limit is 64. ' +
      'Spread them over several pods.',
  ]);
});

test('all problems are reported at once', () => {
  const annotations = {
    'nvidia-virtual/memory': 'much',
    'nvidia-virtual/gpus': '3',
    'nvidia-virtual/policy': 'fixed',
    'nvidia-virtual/priority': '5',
    'nvidia-virtual/mode': 'concurrent',
    'nvidia-virtual/gpu-uuid': 'GPU-1',
  };
  expect(problemsOf(pod(annotations))).toEqual([
    expect.stringContaining('nvidia-virtual/memory is "much"'),
    expect.stringContaining('must spread evenly'),
    expect.stringContaining('3 GPUs (nvidia-virtual/gpus) in mode concurrent'),
    expect.stringContaining('a priority (nvidia-virtual/priority) in mode concurrent'),
    expect.stringContaining('nvidia-virtual/gpu-uuid names 1 of the 3 GPUs'),
  ]);
});

test('a value for all containers does not apply to a container with its own value', () => {
  expect(requestOf({ 'nvidia-virtual/gpus': '3,main=2' })?.gpus).toBe(2);
});

test("a PriorityClass's value is no priority on the GPU, and -0 is 0", () => {
  const subject = pod({ 'nvidia-virtual/priority': '7,other=-0' }, [
    container('main', '1'),
    container('other', '1'),
  ]);
  const outranking: V1Pod = {
    ...subject,
    spec: { containers: [], ...subject.spec, priority: 1e9 },
  };
  expect(readPodRequest(outranking)?.containers.map(({ priority }) => priority)).toEqual([7, 0]);
  const plain = pod({});
  const high: V1Pod = { ...plain, spec: { containers: [], ...plain.spec, priority: 1e9 } };
  expect(readPodRequest(high)?.containers[0]?.priority).toBeUndefined();
});
