import { readExtenderArgs } from './messages.js';

const NO_NAMES = 'its NodeNames are not names of nodes';

test.each([
  ['as kube-scheduler writes it', '{"Pod":{},"Nodes":null,"NodeNames":["a","gpu.example.com"]}'],
  ['with white space', '{"NodeNames": [ "a",\n"gpu.example.com" ], "Pod": {}}'],
])('a request is parsed: %s', (_, request) => {
  const { Pod, NodeNames } = readExtenderArgs(Buffer.from(request));
  expect([Pod, NodeNames]).toEqual([{}, ['a', 'gpu.example.com']]);
});

test.each([
  ['{"Pod":{},"NodeNames":[]}', []],
  ['{"Pod":{},"NodeNames":null}', null],
  ['{"Pod":{}}', undefined],
])('a request may lack node names: %s', (request, names) => {
  expect(readExtenderArgs(Buffer.from(request)).NodeNames).toEqual(names);
});

test('the pod is parsed, whatever its annotations look like', () => {
  const pod = { metadata: { name: 'p', annotations: { x: '"NodeNames":["a"]}' } } };
  const request = JSON.stringify({ Pod: pod, Nodes: null, NodeNames: ['b'] });
  expect(readExtenderArgs(Buffer.from(request))).toMatchObject({ Pod: pod, NodeNames: ['b'] });
});

test.each(['{"Pod":{},"NodeNames":["a', '{"Pod":{},"NodeNames":["a",]}', '', '7', 'null'])(
  'a request that is not a JSON object is refused: %j',
  (request) => {
    expect(() => readExtenderArgs(Buffer.from(request))).toThrow(/JSON/);
  },
);

test.each([
  [['a"b']],
  [['a b']],
  [['a\n']],
  [['a\\b']],
  [['a]']],
  [['__proto__']],
  [['']],
  [['a'.repeat(254)]],
  [['a', 7]],
  [[null]],
  [[['a']]],
  ['a'],
  [{ length: 1 }],
])('a request with values other than node names is refused: %j', (names) => {
  const request = JSON.stringify({ Pod: {}, NodeNames: names });
  expect(() => readExtenderArgs(Buffer.from(request))).toThrow(NO_NAMES);
});
