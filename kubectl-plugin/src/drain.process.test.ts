import { Drain } from './drain.js';
import { type Answer, FakeKubectl } from './testing/fake-kubectl.js';
import { UsageClient } from './usage-client.js';

const DRAINED = 'nvidia-virtual/drained-gpus';
const PATCHED = { output: 'node/n' };
const GPUS = {
  output: JSON.stringify({ gpus: ['GPU-a', 'GPU-b'].map((uuid, index) => ({ uuid, index })) }),
};

let kubectl: FakeKubectl;
afterEach(() => kubectl.remove());

function drain(timeoutMs: number, ...answers: readonly Answer[]): Drain {
  return drainFor({ timeoutMs, settleMs: 0 }, ...answers);
}

function drainFor(
  times: { readonly timeoutMs: number; readonly settleMs: number },
  ...answers: readonly Answer[]
): Drain {
  kubectl = new FakeKubectl(GPUS, ...answers);
  const client = new UsageClient(kubectl.client(), []);
  const named = { node: 'n', gpu: '0', ...times, pauseMs: 1 };
  return new Drain({ kubectl: kubectl.client(), client, ...named });
}

function node(drained?: string): Answer {
  const annotations = drained === undefined ? {} : { [DRAINED]: drained };
  return { output: JSON.stringify({ metadata: { resourceVersion: '7', annotations } }) };
}

/** Pods, each with the indices of its GPU and, while it moves, of the other one. */
function pods(onGpu: Readonly<Record<string, number | readonly number[]>>): Answer {
  const uuidOf = (index: number) => (index === 0 ? 'GPU-a' : 'GPU-b');
  const items = Object.entries(onGpu).map(([name, indices]) => {
    const [index, ...others] = [indices].flat();
    const gpus = index === undefined ? [] : [{ uuid: uuidOf(index), index }];
    return {
      ...{ podUid: `u-${name}`, metadata: { name, namespace: 'a' } },
      containers: [{ gpus, ...(others.length > 0 && { reserved: others.map(uuidOf) }) }],
    };
  });
  return { output: JSON.stringify({ items }) };
}

/** The annotation's values that were written, each with the version of the node. */
function written(): unknown[] {
  return kubectl.calls
    .filter(([verb]) => verb === 'patch')
    .map((call) => JSON.parse(call[call.indexOf('--patch') + 1] ?? '').metadata)
    .map(({ resourceVersion, annotations }) => [resourceVersion, annotations[DRAINED]]);
}

test('drain marks the GPU, and says where its pods are', async () => {
  const lines: string[] = [];
  const before = pods({ one: 0, two: 0, other: 1 });
  const after = pods({ one: 1, other: 1 });
  const draining = drain(60_000, before, node('gpu-b'), PATCHED, before, after);
  expect(await draining.drain((line) => lines.push(line))).toBe(
    'GPU 0 of node n is drained: it has no pods, and gets none until ' +
      '`kubectl gpu-usage undrain n --gpu 0`.',
  );
  expect(lines).toEqual(['a/one is on GPU 1 now.', 'a/two has ended.']);
  expect(written()).toEqual([['7', 'gpu-b,gpu-a']]);
});

test('a pod that moves at once is named, too', async () => {
  const lines: string[] = [];
  const draining = drain(60_000, pods({ one: 0 }), node(), PATCHED, pods({ one: 1 }));
  await draining.drain((line) => lines.push(line));
  expect(lines).toEqual(['a/one is on GPU 1 now.']);
});

test('pods that stay are named with the reason, and the GPU stays drained', async () => {
  const lines: string[] = [];
  const event = { message: 'No room.', lastTimestamp: '2026-01-02T00:00:00Z' };
  const answers = [pods({ one: 0 }), node(), PATCHED, pods({ one: 0 })];
  const draining = drain(0.5, ...answers, { output: JSON.stringify({ items: [event] }) });
  await expect(draining.drain((line) => lines.push(line))).rejects.toThrow(
    'Pods that stay on GPU 0 of node n: 1.',
  );
  expect(lines).toEqual(['a/one stays: No room.']);
  expect(written()).toEqual([['7', 'gpu-a']]);
});

test('a pod whose binding was in progress counts, too', async () => {
  const lines: string[] = [];
  const looks = [pods({ one: 0 }), pods({ one: 1, late: 0 }), pods({ one: 1, late: 1 })];
  await drain(60_000, pods({}), node(), PATCHED, ...looks).drain((line) => lines.push(line));
  expect(lines).toEqual(['a/one is on GPU 1 now.', 'a/late is on GPU 1 now.']);
});

test('a pod holds its former GPU until its move is complete', async () => {
  const lines: string[] = [];
  const looks = [pods({ one: [1, 0] }), pods({ one: [1, 0] }), pods({ one: 1 })];
  await drain(60_000, pods({ one: 0 }), node(), PATCHED, ...looks).drain((line) =>
    lines.push(line),
  );
  expect(lines).toEqual(['a/one is on GPU 1 now.']);
  expect(kubectl.calls.length).toBe(7);
});

test('a GPU without pods is looked at until no binding to it is in progress', async () => {
  const looks = Array.from({ length: 3 }, () => pods({}));
  const times = { timeoutMs: 60_000, settleMs: 60_000 };
  const end = { error: 'Error from server: it was asked often enough\n' };
  const draining = drainFor(times, pods({}), node(), PATCHED, ...looks, end);
  await expect(draining.drain(() => {})).rejects.toThrow('often enough');
});

test('a pod whose node no longer reports it stays', async () => {
  const lines: string[] = [];
  const answers = [pods({ one: 0 }), node(), PATCHED, pods({ one: [] })];
  const draining = drain(0.5, ...answers, { output: JSON.stringify({ items: [] }) });
  await expect(draining.drain((line) => lines.push(line))).rejects.toThrow(
    'Pods that stay on GPU 0 of node n: 1.',
  );
  expect(lines).toEqual(['a/one stays: it has not moved in time.']);
});

test('with a timeout of 0, pods are not waited for', async () => {
  expect(await drain(0, node(), PATCHED).drain(() => {})).toContain('it gets no pods until');
});

test('undrain removes the mark, also after a conflict with another change', async () => {
  const conflict = { error: 'Error from server (Conflict): the object has been modified\n' };
  const draining = drain(1, node('gpu-a'), conflict, node('GPU-A'), PATCHED);
  expect(await draining.undrain()).toBe('GPU 0 of node n gets pods again.');
  expect(written()).toEqual([
    ['7', null],
    ['7', null],
  ]);
});

test('who may not patch nodes is told so', async () => {
  const forbidden = {
    error: 'Error from server (Forbidden): nodes "n" is forbidden: User "x" cannot patch\n',
  };
  await expect(drain(1, node(), forbidden).undrain()).rejects.toThrow(
    'Who may get and patch a node',
  );
});
