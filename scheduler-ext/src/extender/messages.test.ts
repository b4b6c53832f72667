import { NodeGpus } from '../cluster/node-gpus.js';
import { NodeTable } from '../cluster/node-table.js';
import { readExtenderArgs } from './messages.js';
import { type NodeNames, Selection } from './node-names.js';

const nodes = ['a', 'b', 'node-1', 'node-10', 'gpu.example.com', 'last'].map((name, index) => new NodeGpus(name, index));
const table = new NodeTable(() => nodes);

/** What is found under each name of a request, and the name as JSON has it. */
function found(request: string): [string | undefined, string][] | undefined {
  const seen: [string | undefined, string][] = [];
  const { NodeNames } = readExtenderArgs(Buffer.from(request));
  NodeNames?.visit(table, (node, start, end) => seen.push([node?.name, NodeNames.bytes.toString('utf8', start, end)]));
  return NodeNames && seen;
}

test.each([
  ['as kube-scheduler writes it', '{"Pod":{},"Nodes":null,"NodeNames":["last","node-1","node-10","nobody","gpu.example.com"]}'],
  ['with spaces', '{"NodeNames": [ "last", "node-1",\n"node-10", "nobody", "gpu.example.com" ], "Pod": {}}'],
])('each name of a request finds its node: %s', (_, request) => {
  expect(found(request)).toEqual([
    ['last', '"last"'],
    ['node-1', '"node-1"'],
    ['node-10', '"node-10"'],
    [undefined, '"nobody"'],
    ['gpu.example.com', '"gpu.example.com"'],
  ]);
});

test('a request may name no nodes, or have no list of them', () => {
  expect(found('{"Pod":{},"NodeNames":[]}')).toEqual([]);
  expect(found('{"Pod":{},"NodeNames":null}')).toBeUndefined();
  expect(found('{"Pod":{}}')).toBeUndefined();
});

test('the pod is read, whatever its annotations look like', () => {
  const pod = { metadata: { name: 'p', annotations: { x: '"NodeNames":["a"]}' } } };
  const { Pod, NodeNames } = readExtenderArgs(Buffer.from(JSON.stringify({ Pod: pod, Nodes: null, NodeNames: ['b'] })));
  const names: string[] = [];
  NodeNames?.visit(table, (_, start, end) => names.push(NodeNames.bytes.toString('utf8', start, end)));
  expect([Pod, names]).toEqual([pod, ['"b"']]);
});

test.each([['{"Pod":{},"NodeNames":["a'], ['{"Pod":{},"NodeNames":["a",]}'], ['{"Pod":{},"NodeNames":["a\\"b"]}'], ['7'], ['']])(
  'what is no request is refused: %j',
  (request) => {
    expect(() => readExtenderArgs(Buffer.from(request))).toThrow(Error);
  },
);

test.each([
  [[0, 1, 2, 3], '"a","b","c","d"'],
  [[0, 2, 3], '"a","c","d"'],
  [[1, 3], '"b","d"'],
  [[], ''],
])('of a list some are taken over: %j', (chosen, expected) => {
  const { NodeNames } = readExtenderArgs(Buffer.from('{"Pod":{},"NodeNames":["a","b","c","d"]}'));
  const selection = new Selection(NodeNames as NodeNames);
  let index = 0;
  NodeNames?.visit(table, (_, start, end) => {
    if (chosen.includes(index++)) selection.add(start, end);
  });
  expect([selection.bytes.toString(), selection.empty]).toEqual([expected, chosen.length === 0]);
});

test('nodes that come and go are found and not found', () => {
  const all = [new NodeGpus('one')];
  const changing = new NodeTable(() => all);
  const find = (name: string) => {
    let node: NodeGpus | undefined;
    readExtenderArgs(Buffer.from(JSON.stringify({ Pod: {}, NodeNames: [name] }))).NodeNames?.visit(changing, (one) => {
      node = one;
    });
    return node?.name;
  };
  expect([find('one'), find('two')]).toEqual(['one', undefined]);
  all.splice(0, 1, new NodeGpus('two'));
  changing.changed();
  expect([find('one'), find('two')]).toEqual([undefined, 'two']);
});

test('in whatever order names come, each is its own node', () => {
  const all = Array.from({ length: 7 }, (_, index) => new NodeGpus(`n${index}`, index));
  const known = new NodeTable(() => all);
  for (const order of [[0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6], [3, 1, 4, 1, 5], [6, 5, 4, 3, 2, 1, 0], [2], []]) {
    const names = [...order.map((index) => `n${index}`), 'n', 'n77'];
    const found: (string | undefined)[] = [];
    readExtenderArgs(Buffer.from(JSON.stringify({ Pod: {}, NodeNames: names }))).NodeNames?.visit(known, (node) => found.push(node?.name));
    expect(found).toEqual([...names.slice(0, -2), undefined, undefined]);
  }
});
