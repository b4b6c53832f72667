import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';
import { ControlPlane } from '../kubernetes/control-plane.js';
import { MERGE, refusalOf } from '../kubernetes/scheduler/cluster-under-test.js';
import { container } from '../kubernetes/scheduler/objects.js';
import { render } from './chart.js';

/** What a namespace may ask for, decided by a real API server with the chart's policy. */
const POLICIES = '/apis/admissionregistration.k8s.io/v1';
const BUILDING_TOOLS = 1800_000;
const ALLOWED = '';
const DOCUMENTED = readFileSync(path.join(REPOSITORY, 'docs', 'errors.md'), 'utf8');

let plane: ControlPlane;
let api: ApiServer;

beforeAll(async () => {
  plane = await ControlPlane.start();
  api = ApiServer.load(plane.adminKubeconfig);
  await apply({});
  for (const [name, labels] of Object.entries({
    plain: {},
    interactive: { 'nvidia-virtual/max-priority': '50' },
    mistaken: { 'nvidia-virtual/max-priority': 'high' },
    trusting: { 'nvidia-virtual/modes': 'exclusive_concurrent' },
    together: { 'nvidia-virtual/modes': 'concurrent' },
    typed: { 'nvidia-virtual/gpu-types': 'H200_RTX-6000' },
    free: { 'nvidia-virtual/gpu-types': '' },
  }))
    await api.request({
      method: 'POST',
      path: '/api/v1/namespaces',
      body: { kind: 'Namespace', metadata: { name, labels } },
    });
  await takesEffect('plain', { priority: '1' });
}, BUILDING_TOOLS);
afterAll(async () => {
  api?.close();
  await plane?.stop();
});

async function apply(tenants: object): Promise<void> {
  const rendered = await render({ values: { tenants } });
  for (const kind of ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding']) {
    const name = 'nvidia-virtual-tenants';
    const body = rendered.find(kind, name);
    await api.request({
      method: 'PATCH',
      path: `${POLICIES}/${kind.toLowerCase().replace(/y$/, 'ie')}s/${name}`,
      query: { fieldManager: 'test', force: true },
      body,
      contentType: 'application/apply-patch+yaml',
    });
  }
}

/** The API server hears of a policy a little later. */
async function takesEffect(namespace: string, asked: Record<string, string>): Promise<void> {
  await until(async () => (await refusal(namespace, asked)) !== ALLOWED, 'the policy is in force');
}

function podOf(asked: Record<string, string>, slots = 1): V1Pod {
  const annotations = Object.fromEntries(
    Object.entries(asked).map(([name, value]) => [`nvidia-virtual/${name}`, value]),
  );
  return {
    metadata: { name: 'pod', annotations },
    spec: { containers: [container('main', slots), container('side', slots)] },
  };
}

/** Why the API server refuses a pod with these annotations of ours. */
async function refusal(
  namespace: string,
  asked: Record<string, string>,
  slots = 1,
): Promise<string> {
  const create = api.request({
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/pods`,
    query: { dryRun: 'All' },
    body: podOf(asked, slots),
  });
  return create.then(
    () => ALLOWED,
    () => refusalOf(create),
  );
}

describe('a priority', () => {
  test.each(['0', '-1', '-100', '-0', 'main=0, side = -5'])(
    '%j needs no permission',
    async (priority) => {
      expect(await refusal('plain', { priority })).toBe(ALLOWED);
    },
  );

  test('number 23: above 0 is refused, with what to do, where no label allows it', async () => {
    expect(await refusal('plain', { priority: '1' })).toContain(
      'Namespace plain allows priorities up to 0: lower nvidia-virtual/priority, or have an ' +
        'administrator set the label nvidia-virtual/max-priority of the namespace.',
    );
  });

  test('is allowed up to the label of the namespace', async () => {
    expect(await refusal('interactive', { priority: '50' })).toBe(ALLOWED);
    expect(await refusal('interactive', { priority: '51' })).toContain('up to 50');
  });

  test.each([
    'side=1',
    '0,side=1',
    '=1',
    'main==1',
    ' 1 ',
    '+1',
    '1e0',
    '',
    ',',
    '-1,1',
    '\u00a01',
    '1\n',
    '0\n1',
    '1111',
  ])('written as %j does not get past it', async (priority) => {
    expect(await refusal('plain', { priority })).not.toBe(ALLOWED);
  });

  test('is not allowed by a label that is no number', async () => {
    expect(await refusal('mistaken', { priority: '1' })).toContain('up to 0');
    expect(await refusal('mistaken', {})).toBe(ALLOWED);
  });
});

describe('a mode', () => {
  test('concurrent needs a label, for each container', async () => {
    for (const mode of ['concurrent', 'side=concurrent', 'exclusive,side=concurrent']) {
      expect(await refusal('plain', { mode })).toContain(
        'Namespace plain allows the GPU modes exclusive: change nvidia-virtual/mode',
      );
      expect(await refusal('trusting', { mode })).toBe(ALLOWED);
    }
  });

  test('exclusive can be forbidden, also as the default', async () => {
    expect(await refusal('together', { mode: 'concurrent' })).toBe(ALLOWED);
    for (const asked of [{}, { mode: 'exclusive' }, { mode: 'side=concurrent' }])
      expect(await refusal('together', asked)).toContain('allows the GPU modes concurrent');
  });
});

describe('a GPU type', () => {
  test('is free without a label, or with an empty one', async () => {
    for (const namespace of ['plain', 'free'])
      for (const asked of [{}, { 'gpu-type': 'anything' }])
        expect(await refusal(namespace, asked)).toBe(ALLOWED);
  });

  test.each(['H200', 'h200', 'NVIDIA H200', ' RTX 6000 ,H200', 'RTX 6000 Ada', 'H200, !A100'])(
    '%j is among the allowed ones',
    async (type) => {
      expect(await refusal('typed', { 'gpu-type': type })).toBe(ALLOWED);
    },
  );

  // What a pod does not want is no GPU that it may have.
  test.each(['H', 'H100', 'H200,A100', '', '!H200', ' !h200,!RTX 6000', '!H200,A100'])(
    '%j is not',
    async (type) => {
      expect(await refusal('typed', { 'gpu-type': type })).toContain(
        'Namespace typed allows the GPU types H200, RTX-6000: name some of them in ' +
          'nvidia-virtual/gpu-type',
      );
    },
  );

  test('must be named, because a pod without one gets any GPU', async () => {
    expect(await refusal('typed', {})).toContain('allows the GPU types H200, RTX-6000');
  });
});

// The policy and the scheduler would read them differently: as a type, and as an excluded type.
test.each(['\uFEFF', '\u0085', '\u00A0', '\n', '\u007F'])('%j is refused', async (character) => {
  const problem = 'contains a character that is not printable ASCII: remove it.';
  const sentence = (name: string) => `Annotation nvidia-virtual/${name} ${problem}`;
  expect(await refusal('typed', { 'gpu-type': `${character}!H200` })).toContain(
    sentence('gpu-type'),
  );
  for (const [name, value] of Object.entries({ 'gpu-type': 'H200', mode: 'exclusive' }))
    expect(await refusal('free', { [name]: `${value}${character}` })).toContain(sentence(name));
  expect(await refusal('plain', { priority: `${character}0` })).toContain(sentence('priority'));
});

test('a pod that asks for no slots is free to say anything', async () => {
  expect(await refusal('typed', { priority: '100', mode: 'concurrent' }, 0)).toBe(ALLOWED);
});

test('a pod cannot ask for more later, and a changed label binds new requests only', async () => {
  const pods = '/api/v1/namespaces/interactive/pods';
  await api.request({ method: 'POST', path: pods, body: podOf({ priority: '40' }) });
  const change = (annotations: Record<string, string>, part = '') =>
    api.request({
      method: 'PATCH',
      path: `${pods}/pod${part}`,
      body: { metadata: { annotations } },
      contentType: MERGE,
    });
  for (const part of ['', '/status'])
    expect(await refusalOf(change({ 'nvidia-virtual/priority': '60' }, part))).toContain(
      'up to 50',
    );
  await api.request({
    method: 'PATCH',
    path: '/api/v1/namespaces/interactive',
    body: { metadata: { labels: { 'nvidia-virtual/max-priority': '10' } } },
    contentType: MERGE,
  });
  await takesEffect('interactive', { priority: '11' });
  await change({ 'example.com/other': 'changed' });
  expect(await refusalOf(change({ 'nvidia-virtual/priority': '39' }))).toContain('up to 10');
  await change({ 'nvidia-virtual/priority': '10' });
});

test.each([
  [{ mode: 'exclusive\n' }, { namespace: 'plain', annotation: 'nvidia-virtual/mode' }],
  [{ priority: '1' }, { namespace: 'plain', number: '0' }],
  [{ mode: 'concurrent' }, { namespace: 'plain', modes: 'exclusive' }],
  [{}, { namespace: 'typed', types: 'H200, RTX-6000' }],
])('the sentence about %j is in docs/errors.md', async (asked, words) => {
  const said = (await refusal(words.namespace, asked as Record<string, string>)).match(
    /Namespace .*of the namespace\.|Annotation .* remove it\./,
  )?.[0];
  const sentence = Object.entries(words).reduce(
    (text, [name, word]) => text.replace(word, `{${name}}`),
    said ?? 'nothing',
  );
  expect(DOCUMENTED).toContain(`| ${sentence} |`);
});

test('values of the chart are what namespaces without a label may ask for', async () => {
  const tenants = { maxPriority: 20, modes: ['exclusive', 'concurrent'], gpuTypes: ['RTX 6000'] };
  await apply(tenants);
  await takesEffect('plain', {});
  const type = { 'gpu-type': 'RTX 6000' };
  expect(await refusal('plain', { ...type, priority: '20' })).toBe(ALLOWED);
  expect(await refusal('plain', { ...type, mode: 'concurrent' })).toBe(ALLOWED);
  expect(await refusal('plain', { ...type, priority: '21' })).toContain('up to 20');
  expect(await refusal('plain', {})).toContain('allows the GPU types rtx-6000');
  expect(await refusal('mistaken', { ...type, priority: '1' })).toContain('up to 0');
  expect(await refusal('free', { priority: '20' })).toBe(ALLOWED);
});
