import { gpuOf, inventoryOf } from '../testing/nodes.js';
import type { AdmissionRequest } from './review.js';
import { problemsOf } from './validation.js';

const WRITERS = { scheduler: 'scheduler', plugin: 'plugin' };

const SIZE = { memory: 2 ** 31, cores: 10 };

function problems(more: Partial<AdmissionRequest>, size?: typeof SIZE): string[] {
  const resource = { group: '', resource: 'pods' };
  return problemsOf(
    {
      uid: 'u',
      operation: 'CREATE',
      resource,
      userInfo: { username: 'user' },
      object: {},
      ...more,
    },
    WRITERS,
    size,
  );
}

function annotated(annotations: Record<string, string>, spec: object = {}): object {
  const containers = [{ name: 'main', resources: { limits: { 'nvidia-virtual/gpu': '2' } } }];
  return { metadata: { name: 'one', annotations }, spec: { containers, ...spec } };
}

const ASSIGNED = { 'nvidia-virtual/assigned': 'x' };
const INVENTORY = { 'nvidia-virtual/inventory': 'x' };
const NODES = { group: '', resource: 'nodes' };

test('all errors of a new pod are reported at once, including forbidden annotations', () => {
  const object = annotated({
    ...ASSIGNED,
    'nvidia-virtual/memory': 'much',
    'nvidia-virtual/gpus': '3',
  });
  expect(problems({ object })).toHaveLength(3);
});

test.each<[string, Partial<AdmissionRequest>]>([
  ['unchanged', { oldObject: annotated(ASSIGNED) }],
  ['by the scheduler', { oldObject: annotated({}), userInfo: { username: 'scheduler' } }],
])('an assignment %s is allowed', (_, more) => {
  expect(problems({ operation: 'UPDATE', object: annotated(ASSIGNED), ...more })).toEqual([]);
});

test.each<[string, Partial<AdmissionRequest>]>([
  ['written', { operation: 'UPDATE', object: annotated(ASSIGNED), oldObject: annotated({}) }],
  ['removed', { operation: 'UPDATE', object: annotated({}), oldObject: annotated(ASSIGNED) }],
  [
    'bound',
    {
      resource: { group: '', resource: 'pods' },
      subResource: 'binding',
      object: annotated(ASSIGNED),
    },
  ],
  [
    'bound the old way',
    { resource: { group: '', resource: 'bindings' }, object: annotated(ASSIGNED) },
  ],
])('an assignment that another user has %s is refused', (_, more) => {
  expect(problems(more)).toEqual([
    expect.stringContaining('only the scheduler scheduler may write it, not user'),
  ]);
});

describe('nvidia-virtual/move-to', () => {
  const placed = annotated(ASSIGNED, { nodeName: 'node' });
  const to = (gpu: string) => annotated({ ...ASSIGNED, 'nvidia-virtual/move-to': gpu });
  const refusals = (object: object, oldObject = placed) =>
    problems({ operation: 'UPDATE', object, oldObject });

  test('a pod that was placed may be moved, and its annotation removed', () => {
    expect(refusals(to('GPU-73696d75-6c61-4064-a970-750000000001'))).toEqual([]);
    expect(refusals(placed, to('GPU-a'))).toEqual([]);
  });

  test.each(['1', 'GPU', `GPU-${'a'.repeat(65)}`, 'GPU-a\n'])('%j is no GPU', (value) => {
    expect(refusals(to(value))).toEqual([expect.stringContaining('must be the UUID of a GPU')]);
  });

  test('a pod that was not placed is refused', () => {
    const object = annotated({ 'nvidia-virtual/move-to': 'GPU-a' });
    const sentence = expect.stringContaining('moves a pod that our scheduler has placed');
    expect(problems({ object })).toEqual([sentence]);
    expect(refusals(object, annotated({}, { nodeName: 'node' }))).toEqual([sentence]);
  });
});

test('a pod that became invalid before it was validated may change other fields', () => {
  const wrong = { 'nvidia-virtual/memory': 'much' };
  expect(
    problems({
      operation: 'UPDATE',
      object: annotated({ ...wrong, other: 'x' }),
      oldObject: annotated(wrong),
    }),
  ).toEqual([]);
});

test('an inventory may be written only by the plugin of its node', () => {
  const by = (username: string, node?: string) => ({
    resource: NODES,
    object: annotated(INVENTORY),
    oldObject: annotated({}),
    operation: 'UPDATE' as const,
    userInfo: {
      username,
      ...(node !== undefined && { extra: { 'authentication.kubernetes.io/node-name': [node] } }),
    },
  });
  expect(problems(by('plugin'))).toEqual([]);
  expect(problems(by('plugin', 'one'))).toEqual([]);
  expect(problems(by('plugin', 'two'))).toEqual([expect.stringContaining('not that of node two')]);
  expect(problems(by('user', 'one'))).toEqual([expect.stringContaining('not user')]);
});

test('only GPUs of its node are drained, and those that were drained before', () => {
  const gpus = ['GPU-A', 'GPU-B'].map((uuid) => gpuOf(uuid));
  const node = (drained?: string, inventory: string | undefined = inventoryOf(...gpus)) =>
    annotated({
      ...(inventory && { 'nvidia-virtual/inventory': inventory }),
      ...(drained !== undefined && { 'nvidia-virtual/drained-gpus': drained }),
    });
  const change = (object: object, oldObject = node()) =>
    problems({ operation: 'UPDATE', resource: NODES, object, oldObject });
  expect(change(node('gpu-a,GPU-B'))).toEqual([]);
  expect(change(node('0, GPU-A'))).toEqual([
    'The annotation nvidia-virtual/drained-gpus names 0, and node one has no such GPU: ' +
      '`kubectl gpu-usage drain one --gpu INDEX` writes the UUID of a GPU.',
  ]);
  expect(change(node('GPU-A, GPU-gone'), node('GPU-gone'))).toEqual([]);
  expect(change(node(), node('GPU-gone'))).toEqual([]);
  for (const broken of ['', '{', '[]'])
    expect(change(node('GPU-A', broken), node(undefined, broken))).toHaveLength(1);
});

test.each([
  ['in a cluster without slotMemory', '8Gi', [{ name: 'main' }], undefined, 'no container that it'],
  ['to which none were added', '8Gi', [{ name: 'main' }], SIZE, 'no container that it applies to'],
  [
    'of an unknown container',
    'other=8Gi',
    [{ name: 'main' }],
    SIZE,
    'no container that it applies',
  ],
  ['of none of several containers', '8Gi', [{ name: 'a' }, { name: 'b' }], SIZE, 'write CONTAINER'],
  ['that is no size', 'much', [{ name: 'main' }], SIZE, '"much" must be'],
])('memory without slots %s is refused', (_, memory, containers, size, said) => {
  const object = annotated({ 'nvidia-virtual/memory': memory }, { containers });
  expect(problems({ object }, size)).toEqual([expect.stringContaining(said)]);
});

test('memory beside slots is not refused, whatever they hold', () => {
  const object = annotated({ 'nvidia-virtual/memory': '80Gi', 'nvidia-virtual/cores': '90' });
  expect(problems({ object }, SIZE)).toEqual([]);
});

const SUSPENDED = 'nvidia-virtual/suspended';
const PLACED = { nodeName: 'node-1' };

test.each<[string, string | undefined]>([
  ['suspended', 'true'],
  ['resumed', 'false'],
  ['resumed by the removal of the annotation', undefined],
])('a pod may be %s while it runs', (_, value) => {
  const object = annotated(value === undefined ? {} : { [SUSPENDED]: value }, PLACED);
  const oldObject = annotated({ [SUSPENDED]: value === 'true' ? 'false' : 'true' }, PLACED);
  expect(problems({ operation: 'UPDATE', object, oldObject })).toEqual([]);
});

test('a pod is neither created nor changed with another value of suspended', () => {
  const object = annotated({ [SUSPENDED]: 'yes' }, PLACED);
  const said = ['The annotation nvidia-virtual/suspended is "yes", but must be true or false.'];
  expect(problems({ object })).toEqual(said);
  expect(problems({ operation: 'UPDATE', object, oldObject: annotated({}, PLACED) })).toEqual(said);
  expect(problems({ operation: 'UPDATE', object, oldObject: object })).toEqual([]);
});
