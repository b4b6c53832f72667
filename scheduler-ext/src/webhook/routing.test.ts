import type { V1Pod } from '@kubernetes/client-node';
import { routePod } from './routing.js';

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
