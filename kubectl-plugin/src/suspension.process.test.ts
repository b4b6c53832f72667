import { PodObject } from './pod-object.js';
import { Suspension } from './suspension.js';
import { type Answer, FakeKubectl } from './testing/fake-kubectl.js';
import { UsageClient } from './usage-client.js';

const SUSPENDED = 'nvidia-virtual/suspended';
const REFUSAL = 'Process 7 cannot stop now.';
const PATCHED = { output: 'pod/train' };

let kubectl: FakeKubectl;
afterEach(() => kubectl.remove());

function suspension(timeoutMs: number, ...answers: readonly Answer[]): Suspension {
  kubectl = new FakeKubectl(...answers);
  const client = new UsageClient(kubectl.client(), []);
  const named = { namespace: 'a', name: 'train' };
  const object = new PodObject({ kubectl: kubectl.client(), ...named });
  return new Suspension({ ...{ pod: object, client, timeoutMs, pauseMs: 1 }, ...named });
}

/** The answer of the usage API. */
function usage(state: string, more: object = {}, container: object = {}): Answer {
  const time = { busySeconds: 1 };
  const containers = [{ name: 'main', time, ...container }];
  return { output: JSON.stringify({ podUid: 'u', node: 'n', state, containers, ...more }) };
}

function pod(annotations: object = {}): Answer {
  return { output: JSON.stringify({ metadata: { annotations } }) };
}

/** The annotation's values that were written, each with the UID. */
function written(): unknown[] {
  return kubectl.calls
    .filter(([verb]) => verb === 'patch')
    .map((call) => JSON.parse(call[call.indexOf('--patch') + 1] ?? '').metadata)
    .map(({ uid, annotations }) => [uid, annotations[SUSPENDED]]);
}

test('suspend sets the annotation, and waits until the node has followed', async () => {
  const answers = [usage('Active'), pod(), PATCHED, usage('Active'), usage('Suspended')];
  expect(await suspension(60_000, ...answers).suspend()).toBe(
    'train is suspended: its CUDA calls wait until `kubectl gpu-usage resume train -n a`.',
  );
  expect(kubectl.calls[2]?.slice(0, 5)).toEqual([
    ...['patch', 'pod', 'train', '--namespace=a', '--type=merge'],
  ]);
  expect(written()).toEqual([['u', 'true']]);
});

test('resume removes the annotation, and waits', async () => {
  const byPod = { suspendedBy: ['pod'] };
  const suspended = usage('Suspended', {}, byPod);
  const answers = [suspended, pod({ [SUSPENDED]: 'true' }), PATCHED, suspended, usage('Active')];
  expect(await suspension(60_000, ...answers).resume()).toBe('train is resumed.');
  expect(written()).toEqual([['u', null]]);
});

test.each([
  ['Starting', {}, { time: {} }],
  ['Waiting', {}, { time: {} }],
])('a pod that is %s is not waited for', async (...[state, more, container]) => {
  const answers = [usage(state, more, container), pod(), PATCHED, usage(state, more, container)];
  expect(await suspension(60_000, ...answers).suspend()).toBe(
    'train does not run yet: its first CUDA call will wait.',
  );
});

test('with a timeout of 0, the node is not waited for', async () => {
  const answers = [usage('Active'), pod(), PATCHED];
  expect(await suspension(0, ...answers).suspend()).toContain('is told to suspend it');
});

test('a refusal is printed after the timeout, and the annotation is changed back', async () => {
  const refused = usage('Active', { message: REFUSAL });
  await expect(
    suspension(1, usage('Active'), pod({ [SUSPENDED]: 'false' }), PATCHED, refused).suspend(),
  ).rejects.toThrow(
    `Pod train of namespace a is not suspended: ${REFUSAL} Its annotation was changed back.`,
  );
  expect(written()).toEqual([
    ['u', 'true'],
    ['u', 'false'],
  ]);
});

test('an annotation that was there before stays', async () => {
  const answers = [usage('Active'), pod({ [SUSPENDED]: 'true' }), usage('Active')];
  await expect(suspension(1, ...answers).suspend()).rejects.toThrow(
    'node n has not reported that in time. Its annotation was there before, and stays.',
  );
  expect(written()).toEqual([]);
});

test('another pod of the same name is not taken for the suspended one', async () => {
  const answers = [usage('Active'), pod(), PATCHED, usage('Suspended', { podUid: 'other' })];
  await expect(suspension(1, ...answers).suspend()).rejects.toThrow('is not suspended');
});

test('what an administrator suspended is not resumed, and nothing changes', async () => {
  const suspended = usage('Suspended', {}, { suspendedBy: ['pod', 'node'] });
  await expect(suspension(1, suspended).resume()).rejects.toMatchObject({
    code: 'SUSPENDED_BY_NODE',
  });
  expect(kubectl.calls).toHaveLength(1);
});

test('who may not patch the pod is told so', async () => {
  const forbidden = {
    error: 'Error from server (Forbidden): pods "train" is forbidden: User "x" cannot patch\n',
  };
  await expect(suspension(1, usage('Active'), pod(), forbidden).suspend()).rejects.toThrow(
    'Permission denied: pods "train" is forbidden: User "x" cannot patch. Who may get and patch',
  );
});

test('an annotation that cannot be changed back is reported', async () => {
  const error = { error: 'Unable to connect to the server: EOF\n' };
  await expect(
    suspension(1, usage('Active'), pod(), PATCHED, usage('Active'), error).suspend(),
  ).rejects.toThrow('could not be changed back: Unable to connect to the server: EOF');
});
