import { readAssignment, readInventory } from './assignment.js';

test.each([
  [
    'readAssignment',
    readAssignment,
    { version: 1, containers: { main: [{ gpu: 'GPU-1', slots: 2 }] } },
  ],
  ['readInventory', readInventory, { version: 1, gpus: [] }],
])('%s() reads what was written', (_, read, value) => {
  expect(read(JSON.stringify(value))).toEqual(value);
});

test.each([readAssignment, readInventory])(
  '%p gives nothing for what is missing, of another version, or of no version',
  (read) => {
    expect(
      [undefined, 'null', '{}', '{"version":2}', '7', '[]', '"1"'].map((text) => read(text)),
    ).toEqual(Array(7).fill(undefined));
  },
);

test.each([readAssignment, readInventory])('%p throws for what is no JSON', (read) => {
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
])('readAssignment() gives nothing for %s', (text) => {
  expect(readAssignment(text)).toBeUndefined();
});

test.each([
  '{"version":1}',
  '{"version":1,"gpus":{}}',
  '{"version":1,"gpus":[null]}',
  '{"version":1,"gpus":[{"uuid":"GPU-1"}]}',
])('readInventory() gives nothing for %s', (text) => {
  expect(readInventory(text)).toBeUndefined();
});
