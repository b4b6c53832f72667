import { NodeGpus, NodeStates } from '../cluster/node-gpus.js';
import { NOBODY, NodeTable } from '../cluster/node-table.js';
import { ByteWriter } from './byte-writer.js';
import { readExtenderArgs } from './messages.js';
import { type NodeNames, Selection } from './node-names.js';

const table = tableOf(['a', 'b', 'node-1', 'node-10', 'gpu.example.com', 'last']).current;

function tableOf(names: readonly string[]): NodeTable {
  const states = new NodeStates();
  const nodes = names.map((name, index) => new NodeGpus(name, index, states));
  return new NodeTable(() => nodes, states);
}

function textOf({ words }: NodeNames, start: number, end: number): string {
  return words.bytes(start, end).toString();
}

/** What is found under each name of a request, and the name as JSON has it. */
function found(request: string): [string | undefined, string][] | undefined {
  const seen: [string | undefined, string][] = [];
  const { NodeNames } = readExtenderArgs(Buffer.from(request));
  NodeNames?.visit(table, (index, start, end) => seen.push([table.node(index)?.name, textOf(NodeNames, start, end)]));
  return NodeNames && seen;
}

test.each([
  ['as kube-scheduler writes it', '{"Pod":{},"Nodes":null,"NodeNames":["last","node-1","node-10","nobody","gpu.example.com"]}'],
  ['in lines', '{"Pod":{},"NodeNames":["last",\n"node-1",\n"node-10",\n"nobody",\n"gpu.example.com"]}'],
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
  NodeNames?.visit(table, (_, start, end) => names.push(textOf(NodeNames, start, end)));
  expect([Pod, names]).toEqual([pod, ['"b"']]);
});

test.each([['{"Pod":{},"NodeNames":["a'], ['{"Pod":{},"NodeNames":["a",]}'], ['{"Pod":{},"NodeNames":["a\\"b"]}'], ['7'], ['']])(
  'what is no request is refused: %j',
  (request) => {
    expect(() => readExtenderArgs(Buffer.from(request))).toThrow(Error);
  },
);

test.each([
  [[0, 1, 2, 3], '"a","b","c","d"', ''],
  [[0, 2, 3], '"a","c","d"', ''],
  [[1, 3], '"b","d"', ''],
  [[0, 1, 3], '"a","b","d"', ' '],
  [[], '', ''],
])('of a list some are taken over: %j', (chosen, expected, space) => {
  const { NodeNames } = readExtenderArgs(Buffer.from(`{"Pod":{},"NodeNames":[${space}"a","b","c","d"]}`));
  const selection = new Selection(NodeNames as NodeNames, new ByteWriter());
  let index = 0;
  NodeNames?.visit(table, (_, start, end) => {
    if (chosen.includes(index++)) selection.add(start, end);
  });
  expect([selection.bytes.toString(), selection.empty]).toEqual([expected, chosen.length === 0]);
});

test('nodes that come and go are found and not found', () => {
  const states = new NodeStates();
  const all = [new NodeGpus('one', 0, states)];
  const changing = new NodeTable(() => all, states);
  const find = (name: string) => {
    let index = NOBODY;
    const nodes = changing.current;
    readExtenderArgs(Buffer.from(JSON.stringify({ Pod: {}, NodeNames: [name] }))).NodeNames?.visit(nodes, (one) => {
      index = one;
    });
    return nodes.node(index)?.name;
  };
  expect([find('one'), find('two')]).toEqual(['one', undefined]);
  all.splice(0, 1, new NodeGpus('two', 1000, states));
  changing.changed();
  expect([find('one'), find('two')]).toEqual([undefined, 'two']);
});

test('of thousands of names each is its own node', () => {
  const names = Array.from({ length: 3000 }, (_, index) => `n${index}`);
  const known = tableOf(names).current;
  const asked = [...names.reverse(), 'n', 'n3000'];
  const found: (string | undefined)[] = [];
  const { NodeNames } = readExtenderArgs(Buffer.from(JSON.stringify({ Pod: {}, NodeNames: asked })));
  NodeNames?.visit(known, (index) => found.push(known.node(index)?.name));
  expect(found).toEqual([...asked.slice(0, -2), undefined, undefined]);
});

test.each(['"a""b"', '"a",b","c"', '"a","'])('what only looks like a list of names is refused: %s', (list) => {
  const { NodeNames } = readExtenderArgs(Buffer.from(`{"Pod":{},"NodeNames":[${list}]}`));
  expect(() => NodeNames?.visit(table, () => {})).toThrow('its NodeNames are no names of nodes');
});
