import { Move } from './move.js';
import { PodObject } from './pod-object.js';
import { type Answer, FakeKubectl } from './testing/fake-kubectl.js';
import { UsageClient } from './usage-client.js';

const MOVE_TO = 'nvidia-virtual/move-to';
const ASSIGNED = 'nvidia-virtual/assigned';
const PATCHED = { output: 'pod/train' };
const USAGE = {
  output: JSON.stringify({ podUid: 'u', node: 'n', state: 'Active', containers: [] }),
};
const NODE = {
  output: JSON.stringify({
    gpus: ['GPU-a', 'GPU-b'].map((uuid, index) => ({ uuid, index })),
  }),
};

let kubectl: FakeKubectl;
afterEach(() => kubectl.remove());

function move(gpu: string, timeoutMs: number, ...answers: readonly Answer[]): Promise<string> {
  kubectl = new FakeKubectl(...answers);
  const named = { namespace: 'a', name: 'train' };
  const client = new UsageClient(kubectl.client(), []);
  const pod = new PodObject({ kubectl: kubectl.client(), ...named });
  return new Move({ ...{ pod, client, gpu, timeoutMs, pauseMs: 1 }, ...named }).run();
}

function pod(gpu: string, annotations: object = {}, more: object = {}): Answer {
  const containers = { main: [{ gpu, slots: 1 }] };
  const assigned = JSON.stringify({ version: 1, containers, ...more });
  return {
    output: JSON.stringify({
      metadata: { uid: 'u', annotations: { [ASSIGNED]: assigned, ...annotations } },
    }),
  };
}

/** The annotation's values that were written, each with the UID. */
function written(): unknown[] {
  return kubectl.calls
    .filter(([verb]) => verb === 'patch')
    .map((call) => JSON.parse(call[call.indexOf('--patch') + 1] ?? '').metadata)
    .map(({ uid, annotations }) => [uid, annotations[MOVE_TO]]);
}

const WANTED = { [MOVE_TO]: 'GPU-b' };
const UNDERWAY = pod('GPU-b', WANTED, { former: 'GPU-a', move: 1 });

test('move sets the annotation, and waits until the pod is there', async () => {
  const answers = [USAGE, NODE, pod('GPU-a'), PATCHED, pod('GPU-a', WANTED), UNDERWAY];
  expect(await move('1', 60_000, ...answers, pod('GPU-b', {}, { move: 1 }))).toBe(
    'train is on GPU 1 of node n now, and its programs go on there.',
  );
  expect(written()).toEqual([['u', 'GPU-b']]);
});

test('a GPU is found by its UUID without the right to see nodes', async () => {
  const answers = [USAGE, pod('GPU-a'), PATCHED, pod('GPU-b')];
  expect(await move('gpu-B', 60_000, ...answers)).toContain('train is on GPU gpu-B of node n');
});

test('with a timeout of 0, the move is not waited for', async () => {
  expect(await move('GPU-b', 0, USAGE, pod('GPU-a'), PATCHED)).toBe(
    'The scheduler is told to move train to GPU GPU-b of n.',
  );
});

test('a move that did not begin in time ends with the annotation, and says why', async () => {
  const waiting = pod('GPU-a', WANTED);
  const events = {
    output: JSON.stringify({
      items: [
        { message: 'Old.', lastTimestamp: '2026-01-01T00:00:00Z' },
        { message: 'No slots.', lastTimestamp: '2026-01-02T00:00:00Z' },
      ],
    }),
  };
  const answers = [USAGE, pod('GPU-a'), PATCHED, waiting, events, PATCHED, pod('GPU-a')];
  await expect(move('GPU-b', 1, ...answers)).rejects.toThrow(
    'Pod train of namespace a is not on GPU GPU-b of node n: No slots. ' +
      'Its annotation was changed back.',
  );
  expect(written()).toEqual([
    ['u', 'GPU-b'],
    ['u', null],
  ]);
  expect(kubectl.calls[4]?.[2]).toBe(
    '/api/v1/namespaces/a/events?fieldSelector=involvedObject.uid%3Du%2Creason%3DGpuNotMoved',
  );
});

test('a pod that has begun to move goes back after the timeout', async () => {
  const answers = [USAGE, pod('GPU-a'), PATCHED, UNDERWAY, { output: '{"items":[]}' }];
  await expect(move('GPU-b', 1, ...answers, PATCHED, UNDERWAY, PATCHED)).rejects.toThrow(
    'it has not arrived in time. It goes back to GPU GPU-a.',
  );
  expect(written().at(-1)).toEqual(['u', 'GPU-a']);
});

test('an index that the node does not have is refused with those that it has', async () => {
  await expect(move('7', 1, USAGE, NODE)).rejects.toThrow(
    'Node n has no GPU 7. Its GPUs: 0 (GPU-a), 1 (GPU-b).',
  );
});

test('who may not see nodes is asked for the UUID', async () => {
  const error = {
    error: 'Error from server (Forbidden): nodegpuusages "n" is forbidden: User "x" cannot get\n',
  };
  await expect(move('1', 1, USAGE, error)).rejects.toThrow('give its UUID by --gpu');
});

test('who may not patch the pod is told so, and a pod without a node does not move', async () => {
  const error = {
    error: 'Error from server (Forbidden): pods "train" is forbidden: User "x" cannot patch\n',
  };
  await expect(move('GPU-b', 1, USAGE, pod('GPU-a'), error)).rejects.toThrow(
    'Who may get and patch a pod may move it',
  );
  kubectl.remove();
  const waiting = { output: JSON.stringify({ podUid: 'u', state: 'Waiting', containers: [] }) };
  await expect(move('GPU-b', 1, waiting)).rejects.toMatchObject({ code: 'MOVE_UNPLACED' });
});
