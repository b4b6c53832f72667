import type { V1Container, V1Pod } from '@kubernetes/client-node';
import { type Dialect, type TranslationOptions, translate } from './translation.js';

const BOTH: readonly Dialect[] = ['hami', 'nvidia'];
/** Tenths of each GPU. */
const PARTS: TranslationOptions = { dialects: BOTH, slotSize: undefined, slotsPerGpu: 10 };
/** Slots of 2 GiB and 10 %. */
const BY_MEMORY: TranslationOptions = {
  dialects: BOTH,
  slotSize: { memory: 2 * 2 ** 30, cores: 10 },
  slotsPerGpu: 10,
};

/** A pod with one container that has these limits, without the prefix `nvidia.com/`. */
function pod(limits: Record<string, string>, more: Partial<V1Pod> = {}): V1Pod {
  const named = Object.entries(limits).map(([name, value]) => [`nvidia.com/${name}`, value]);
  const containers = [
    { name: 'main', resources: { limits: { cpu: '1', ...Object.fromEntries(named) } } },
  ];
  return { metadata: {}, ...more, spec: { ...more.spec, containers } };
}

function annotated(annotations: Record<string, string>): V1Pod {
  return pod({ gpumem: '1000' }, { metadata: { annotations } });
}

/** Limits of the first container and annotations, without the prefix `nvidia-virtual/`. */
function ours(subject: V1Pod, options = PARTS): Record<string, unknown> {
  const { pod: translated, problems } = translate(subject, options);
  if (problems.length > 0) return { problems };
  const [first] = translated.spec?.containers ?? [];
  const annotations = Object.entries(translated.metadata?.annotations ?? {}).map(
    ([name, value]) => [name.replace('nvidia-virtual/', ''), value],
  );
  const { cpu: _, ...limits } = first?.resources?.limits ?? {};
  return { ...limits, ...Object.fromEntries(annotations) };
}

test.each<[Record<string, string>, Record<string, unknown>]>([
  [{ gpu: '1' }, { 'nvidia-virtual/gpu': '10' }],
  [{ gpu: '2' }, { 'nvidia-virtual/gpu': '20', gpus: 'main=2' }],
  [
    { gpu: '1', gpucores: '25' },
    { 'nvidia-virtual/gpu': '10', cores: 'main=25' },
  ],
  [{ gpu: '1', 'gpumem-percentage': '30' }, { 'nvidia-virtual/gpu': '3' }],
  [{ 'gpumem-percentage': '31' }, { 'nvidia-virtual/gpu': '4' }],
  [
    { gpu: '2', 'gpumem-percentage': '20', gpucores: '45' },
    { 'nvidia-virtual/gpu': '10', gpus: 'main=2', cores: 'main=45' },
  ],
  [
    { gpu: '1', gpumem: '3000', gpucores: '30' },
    { 'nvidia-virtual/gpu': '3', memory: 'main=3000Mi', cores: 'main=30' },
  ],
])('with equal parts, %j becomes %j', (limits, expected) => {
  expect(ours(pod(limits))).toEqual(expected);
});

test.each<[Record<string, string>, Record<string, unknown>]>([
  [{ gpu: '1', gpumem: '3000' }, { memory: 'main=3000Mi' }],
  [
    { gpumem: '3000', gpucores: '30' },
    { memory: 'main=3000Mi', cores: 'main=30' },
  ],
  [
    { gpu: '2', gpumem: '3k' },
    { memory: 'main=3000Mi', gpus: 'main=2' },
  ],
])('with slots of a fixed memory, %j becomes %j, and slots follow', (limits, expected) => {
  expect(ours(pod(limits), BY_MEMORY)).toEqual(expected);
});

test.each([
  [{ gpu: '1' }, BY_MEMORY, 'without nvidia.com/gpumem'],
  [{ 'gpumem-percentage': '50' }, BY_MEMORY, 'without nvidia.com/gpumem'],
  [{ gpumem: '3000' }, PARTS, 'requests nvidia.com/gpumem without nvidia.com/gpucores'],
] as const)('%j is refused if its slots are unknown', (limits, options, reason) => {
  expect(ours(pod(limits), options)).toEqual({ problems: [expect.stringContaining(reason)] });
});

test.each<[string, V1Pod, readonly Dialect[]]>([
  ['without the option', pod({ gpu: '1', gpumem: '3000' }), []],
  ['whole GPUs, if only HAMi is translated', pod({ gpu: '1' }), ['hami']],
  ['nothing', pod({ gpu: '0', gpumem: '0' }), BOTH],
  ['an invalid number', pod({ gpumem: 'much' }), BOTH],
  ['no GPU', { spec: { containers: [{ name: 'main' }] } }, BOTH],
])('a pod stays as it is: %s', (_, subject, dialects) => {
  expect(translate(subject, { ...PARTS, dialects }).pod).toBe(subject);
});

test('other limits, other containers and requests stay', () => {
  const other: V1Container = { name: 'other', resources: { limits: { memory: '1Gi' } } };
  const resources = {
    requests: { cpu: '1', 'nvidia.com/gpu': '1' },
    limits: { memory: '2Gi', 'nvidia.com/gpu': '1', 'nvidia.com/gpumem-percentage': '50' },
  };
  const subject = {
    spec: { initContainers: [{ name: 'prepare', resources }], containers: [other] },
  };
  expect(translate(subject, PARTS).pod.spec).toEqual({
    initContainers: [
      {
        name: 'prepare',
        resources: { requests: { cpu: '1' }, limits: { memory: '2Gi', 'nvidia-virtual/gpu': '5' } },
      },
    ],
    containers: [other],
  });
});

test('types, UUIDs and placement are translated', () => {
  const foreign = {
    'nvidia.com/use-gputype': 'A100, H100',
    'nvidia.com/nouse-gputype': 'T4',
    'nvidia.com/nouse-gpuuuid': 'GPU-1,GPU-2',
    'hami.io/gpu-scheduler-policy': 'spread',
  };
  expect(ours(annotated(foreign), BY_MEMORY)).toEqual({
    ...foreign,
    memory: 'main=1000Mi',
    'gpu-type': 'A100,H100,!T4',
    'gpu-uuid': '!GPU-1,!GPU-2',
    placement: 'spread',
  });
});

test('annotations of ours stay beside what is translated', () => {
  const given = { 'nvidia-virtual/memory': 'other=1Gi', 'nvidia-virtual/policy': 'fixed' };
  expect(ours(annotated(given), BY_MEMORY)).toEqual({
    memory: 'other=1Gi,main=1000Mi',
    policy: 'fixed',
  });
});

test("NVIDIA's runtime class and HAMi's scheduler are removed, others stay", () => {
  const spec = (runtimeClassName: string, schedulerName: string) =>
    translate(pod({ gpu: '1' }, { spec: { runtimeClassName, schedulerName } } as never), PARTS).pod
      .spec;
  expect(Object.keys(spec('nvidia', 'hami-scheduler') ?? {})).toEqual(['containers']);
  expect(spec('gvisor', 'volcano')).toMatchObject({
    runtimeClassName: 'gvisor',
    schedulerName: 'volcano',
  });
});
