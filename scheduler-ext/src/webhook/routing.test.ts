import type { V1Pod } from '@kubernetes/client-node';
import { routePod as route } from './routing.js';

const GIB = 2 ** 30;
const SIZE = { memory: 2 * GIB, cores: 10 };
const routePod = (subject: V1Pod) => route(subject, undefined);

function pod(annotations: Record<string, string> | undefined, spec: object = {}): V1Pod {
  const containers = [{ name: 'main', resources: { limits: { 'nvidia-virtual/gpu': '1' } } }];
  return { metadata: { ...(annotations && { annotations }) }, spec: { containers, ...spec } };
}

test('a pod that requests no slots is not changed', () => {
  expect(
    routePod({
      spec: {
        containers: [{ name: 'main', resources: { limits: { 'nvidia-virtual/gpu': '0' } } }],
      },
    }),
  ).toEqual([]);
});

test('annotations are created if there are none', () => {
  expect(routePod(pod(undefined))).toEqual([
    { op: 'add', path: '/spec/schedulerName', value: 'nvidia-virtual-scheduler' },
    {
      op: 'add',
      path: '/metadata/annotations',
      value: { 'nvidia-virtual/gpus': '1', 'nvidia-virtual/mode': 'exclusive' },
    },
  ]);
});

test('existing values are kept, and a second call changes nothing', () => {
  const annotations = { 'nvidia-virtual/gpus': '2', other: 'x' };
  expect(routePod(pod(annotations, { schedulerName: 'nvidia-virtual-scheduler' }))).toEqual([
    { op: 'add', path: '/metadata/annotations/nvidia-virtual~1mode', value: 'exclusive' },
  ]);
  const settled = { 'nvidia-virtual/gpus': '2', 'nvidia-virtual/mode': 'concurrent' };
  expect(routePod(pod(settled, { schedulerName: 'nvidia-virtual-scheduler' }))).toEqual([]);
});

test.each([
  { schedulerName: 'other' },
  { nodeName: 'node' },
  { schedulerName: 'default-scheduler', nodeName: 'node' },
])('a pod with %j gets its scheduler', (spec) => {
  expect(routePod(pod({}, spec)).map(({ path }) => path)).not.toContain('/spec/schedulerName');
});

/** The limits that are added, by path. */
function added(subject: V1Pod): Record<string, unknown> {
  const resources = route(subject, SIZE).filter(({ path }) => path.endsWith('/resources'));
  return Object.fromEntries(
    resources.map(({ path, value }) => [
      path.slice('/spec/'.length, -'/resources'.length),
      (value as { limits: Record<string, string> }).limits['nvidia-virtual/gpu'],
    ]),
  );
}

function asking(annotations: Record<string, string>, ...names: readonly string[]): V1Pod {
  const prefixed = Object.entries(annotations).map(([name, value]) => [
    name.includes('/') ? name : `nvidia-virtual/${name}`,
    value,
  ]);
  return {
    metadata: { annotations: Object.fromEntries(prefixed) },
    spec: { containers: names.map((name) => ({ name })) },
  };
}

test.each<[string, Record<string, string>, Record<string, string>]>([
  ['memory', { memory: '8Gi' }, { 'containers/0': '4' }],
  ['memory that does not divide evenly, rounded up', { memory: '7Gi' }, { 'containers/0': '4' }],
  ['a byte more than a slot', { memory: String(2 * GIB + 1) }, { 'containers/0': '2' }],
  ['less memory than a slot', { memory: '1M' }, { 'containers/0': '1' }],
  ['more time than the slots allow', { memory: '8Gi', cores: '55' }, { 'containers/0': '6' }],
  ['less time than the slots allow', { memory: '8Gi', cores: '20' }, { 'containers/0': '4' }],
  ['memory on each of several GPUs', { memory: '8Gi', gpus: '3' }, { 'containers/0': '12' }],
])('a container that asks for %s gets its slots', (_, annotations, slots) => {
  expect(added(asking(annotations, 'main'))).toEqual(slots);
});

test('only the containers that the annotation names get slots', () => {
  const pod = asking({ memory: '8Gi,trainer=16Gi,loader=3Gi' }, 'proxy', 'trainer');
  const initContainers = [{ name: 'loader' }, { name: 'other' }];
  expect(added({ ...pod, spec: { ...pod.spec, initContainers } } as V1Pod)).toEqual({
    'containers/1': '8',
    'initContainers/0': '2',
  });
});

test('of several containers, one value is for the default container of kubectl', () => {
  const main = { memory: '8Gi', 'kubectl.kubernetes.io/default-container': 'second' };
  expect(added(asking(main, 'first', 'second'))).toEqual({ 'containers/1': '4' });
  expect(route(asking({ memory: '8Gi' }, 'first', 'second'), SIZE)).toEqual([]);
});

test('slots that a container requests stay, and other limits too', () => {
  const limits = { 'nvidia-virtual/gpu': '2' };
  const pod = asking({ memory: '8Gi,second=2Gi' }, 'first', 'second', 'third');
  const [, second = { name: '' }, third = { name: '' }] = pod.spec?.containers ?? [];
  const containers = [
    { name: 'first', resources: { limits } },
    { ...second, resources: { limits: { cpu: '1' }, requests: { cpu: '1' } } },
    third,
  ];
  const patches = route({ ...pod, spec: { containers } }, SIZE);
  expect(patches.filter(({ path }) => path.endsWith('resources'))).toEqual([
    {
      op: 'add',
      path: '/spec/containers/1/resources',
      value: { limits: { cpu: '1', 'nvidia-virtual/gpu': '1' }, requests: { cpu: '1' } },
    },
  ]);
});

test('no slots are added without a slot size, or to an invalid request', () => {
  expect(routePod(asking({ memory: '8Gi' }, 'main'))).toEqual([]);
  expect(route(asking({ memory: 'much' }, 'main'), SIZE)).toEqual([]);
});

test('a pod that asks for memory gets our scheduler, and a second call changes nothing', () => {
  const pod = asking({ memory: '8Gi', gpus: '1', mode: 'exclusive' }, 'main');
  const patches = route(pod, SIZE);
  expect(patches.map(({ path }) => path)).toEqual([
    '/spec/containers/0/resources',
    '/spec/schedulerName',
  ]);
  const containers = [{ name: 'main', resources: patches[0]?.value as object }];
  const schedulerName = 'nvidia-virtual-scheduler';
  expect(route({ ...pod, spec: { containers, schedulerName } }, SIZE)).toEqual([]);
});
