import { readAssignment, readInventory } from './assignment.js';

test.each([
  [
    'readAssignment',
    readAssignment,
    { version: 1, containers: { main: [{ gpu: 'GPU-1', slots: 2 }] } },
  ],
  ['readInventory', readInventory, { version: 1, gpus: [] }],
])('%s() parses a written value', (_, read, value) => {
  expect(read(JSON.stringify(value))).toEqual(value);
});

test.each([readAssignment, readInventory])(
  '%p returns undefined for missing values and other versions',
  (read) => {
    expect(
      [undefined, 'null', '{}', '{"version":2}', '7', '[]', '"1"'].map((text) => read(text)),
    ).toEqual(Array(7).fill(undefined));
  },
);

test.each([readAssignment, readInventory])('%p throws for text that is not JSON', (read) => {
  expect(() => read('{')).toThrow(SyntaxError);
});

test.each([
  '{"version":1}',
  '{"version":1,"containers":null}',
  '{"version":1,"containers":{"main":null}}',
  '{"version":1,"containers":{"main":[null]}}',
  '{"version":1,"containers":{"main":[{"gpu":7,"slots":1}]}}',
  '{"version":1,"containers":{"main":[{"gpu":"GPU-1","slots":-1}]}}',
  '{"version":1,"containers":{"main":[{"gpu":"GPU-1","slots":"1"}]}}',
])('readAssignment() returns undefined for %s', (text) => {
  expect(readAssignment(text)).toBeUndefined();
});

test.each([
  '{"version":1}',
  '{"version":1,"gpus":{}}',
  '{"version":1,"gpus":[null]}',
  '{"version":1,"gpus":[{"uuid":"GPU-1"}]}',
])('readInventory() returns undefined for %s', (text) => {
  expect(readInventory(text)).toBeUndefined();
});

const GPU = {
  ...{ uuid: 'GPU-1', name: 'NVIDIA H200', memory: 8, slotMemory: 1, slots: 8 },
  ...{ mode: 'exclusive', healthy: true },
};

test.each<[object, boolean]>([
  [{}, true],
  [{ name: '\u001b[2J' }, false],
  [{ name: 'x'.repeat(1000) }, false],
  [{ uuid: 'GPU-\u202e1' }, false],
  [{ memory: '8' }, false],
  [{ slotMemory: [] }, false],
  [{ slots: '8' }, false],
])('readInventory() accepts a GPU with %j: %s', (more, isAccepted) => {
  const text = JSON.stringify({ version: 1, gpus: [{ ...GPU, ...more }] });
  expect(readInventory(text) !== undefined).toBe(isAccepted);
});

test('readInventory() leaves out reports of pods that it cannot read', () => {
  const gpus = [{ gpu: 'GPU-1', slots: 2 }];
  const good = { placed: [{ pod: 'p', gpus }], arrivals: [{ pod: 'p', move: 1 }] };
  const bad = {
    arrivals: [null, { pod: 'q' }],
    placed: [
      null,
      { pod: 7, gpus },
      { pod: 'q' },
      { pod: 'q', gpus: [] },
      { pod: 'q', gpus: [...gpus, { gpu: 'GPU-2', slots: 0.5 }] },
    ],
  };
  const read = (more: object) => readInventory(JSON.stringify({ version: 1, gpus: [], ...more }));
  expect(read(bad)).toEqual({ version: 1, gpus: [] });
  const both = {
    arrivals: [...bad.arrivals, ...good.arrivals],
    placed: [...bad.placed, ...good.placed],
  };
  expect(read(both)).toEqual({ version: 1, gpus: [], ...good });
});
