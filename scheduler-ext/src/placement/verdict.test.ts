import type { Strategy } from '@nvidia-virtual/kube-common/pod-request';
import type { NodeGpus } from '../cluster/node-gpus.js';
import { NodeGpus as Node } from '../cluster/node-gpus.js';
import { demandOf, gpuOf, needOf, nodeOf, nodeWithUsed, podOf } from '../testing/nodes.js';
import { Demand } from './demand.js';
import { Steps } from './placement.js';
import { Judge } from './verdict.js';

const GIB = 2 ** 30;

function judge(demand: Demand, node: NodeGpus | undefined, strategy: Strategy = 'binpack') {
  return new Judge(demand, strategy).judge(node, { uid: 'pod', priority: 0 });
}

function broken(): NodeGpus {
  const node = new Node('node');
  node.setInventory('{"version":1,"gpus":7}');
  return node;
}

const one = demandOf(needOf('main', 4));
const uuid = new Demand({
  containers: [needOf('main', 1)],
  gpuTypes: [],
  gpuUuids: ['GPU-x', 'GPU-y'],
  placement: undefined,
});
const type = new Demand({
  containers: [needOf('main', 1)],
  gpuTypes: ['A100', 'h100'],
  gpuUuids: [],
  placement: undefined,
});
const ill = nodeOf(
  gpuOf('a', { healthy: false }),
  gpuOf('b', { name: 'Other', mode: 'concurrent' }),
);
const foreign = nodeWithUsed(3);
foreign.hold({
  uid: 'foreign',
  priority: 0,
  holding: undefined,
  demand: demandOf(needOf('main', 5)),
});

test.each<[string, Demand, NodeGpus | undefined, boolean]>([
  ['Nodes without a GPU that nvidia-virtual serves', one, undefined, false],
  ['Nodes without a GPU that nvidia-virtual serves', one, nodeOf(), false],
  [
    'Nodes whose annotation nvidia-virtual/inventory cannot be read: restart their device plugin',
    one,
    broken(),
    false,
  ],
  ['Nodes without GPU GPU-x, GPU-y', uuid, nodeWithUsed(0), false],
  [
    'Nodes whose GPUs are NVIDIA H200, and the pod asks for type A100 or h100',
    type,
    nodeWithUsed(0),
    false,
  ],
  [
    'Nodes without a GPU in concurrent mode, for which container main asks',
    demandOf(needOf('main', 1, { mode: 'concurrent' })),
    nodeWithUsed(0),
    false,
  ],
  [
    'Nodes whose GPUs have 10 slots, and container main asks for 12 on one: spread them by ' +
      'nvidia-virtual/gpus',
    demandOf(needOf('main', 12)),
    nodeWithUsed(0, 0),
    false,
  ],
  [
    'Nodes whose GPUs have 10 slots, and container main asks for 12 on one: spread them by ' +
      'nvidia-virtual/gpus',
    demandOf(needOf('main', 12)),
    nodeOf(gpuOf('a', { slots: 15, mostSlots: 10 })),
    false,
  ],
  [
    'Nodes whose GPUs are oversubscribed, and container main asks for 2 GPUs: ask for one, or ' +
      'for nodes without oversubscription',
    demandOf(needOf('main', 2, { gpus: 2 })),
    nodeOf(...['a', 'b'].map((uuid) => gpuOf(uuid, { slots: 15, mostSlots: 10 }))),
    false,
  ],
  [
    'Nodes where 2 slots of a GPU hold 26Gi, and container main asks for 40Gi: ask for 4 ' +
      'slots, or for less memory',
    demandOf(needOf('main', 2, { memory: 40 * GIB })),
    nodeWithUsed(0),
    false,
  ],
  [
    'Nodes with 2 fitting GPUs, and container main asks for slots on 3',
    demandOf(needOf('main', 3, { gpus: 3 })),
    nodeWithUsed(0, 0),
    false,
  ],
  ['Nodes whose fitting GPUs are unhealthy (1 of 1)', one, ill, false],
  [
    "Nodes whose 1 GPUs are too few for the pod's 2 containers, even without other pods",
    demandOf(needOf('one', 6), needOf('two', 6)),
    nodeWithUsed(0),
    false,
  ],
  [
    'Nodes without 4 free slots on one GPU for container main (the most on one: 3 of 10)',
    one,
    nodeWithUsed(7, 8),
    true,
  ],
  [
    'Nodes without 3 free slots on each of 2 GPUs for container main (the most on one: 9 of 10)',
    demandOf(needOf('main', 6, { gpus: 2 })),
    nodeWithUsed(1, 8),
    true,
  ],
  [
    'Nodes without 4 free slots on one GPU for container main, because 5 slots are held by ' +
      'pods that another scheduler placed on unknown GPUs',
    one,
    foreign,
    true,
  ],
])('judge(): %s', (sentence, demand, node, resolvable) => {
  expect(judge(demand, node)).toEqual({ sentence, resolvable });
});

test.each(['gpuUuids', 'gpuTypes'])('judge() repeats the start of very long %s only', (list) => {
  const names = Array.from({ length: 64 }, () => 'x'.repeat(62));
  const request = { gpuTypes: [], gpuUuids: [], placement: undefined, [list]: names };
  const demand = new Demand({ containers: [needOf('main', 1)], ...request });
  const { sentence } = judge(demand, nodeWithUsed(0)) as { sentence: string };
  expect(sentence).toMatch(/xxx(,| or) xxx/);
  expect(sentence.length).toBeLessThan(300);
});

test('judge() reports that the containers do not fit together', () => {
  expect(judge(demandOf(needOf('one', 5), needOf('two', 5)), nodeWithUsed(5, 7))).toMatchObject({
    sentence:
      "Nodes on whose GPUs the pod's 2 containers find no room together: 8 of 20 slots are free",
    resolvable: true,
  });
});

test('a verdict without steps left is not kept', () => {
  const demand = demandOf(...[4, 4, 3, 3, 3, 3].map((each, index) => needOf(`c${index}`, each)));
  const [known, node, pod] = [new Judge(demand, 'binpack'), nodeWithUsed(0, 0), podOf('pod')];
  const spent = new Steps();
  spent.left = 0;
  expect(known.judge(node, pod, spent)).toMatchObject({ resolvable: true });
  expect(known.judge(node, pod)).toHaveProperty('score');
  expect(known.judge(node, pod, spent)).toHaveProperty('score');
});

test('with binpack the fuller GPU and node score higher, with spread the emptier ones', () => {
  const score = (node: NodeGpus, strategy: Strategy) =>
    (judge(one, node, strategy) as { score: number }).score;
  const nodes = [nodeWithUsed(6, 9), nodeWithUsed(6, 0), nodeWithUsed(2, 0), nodeWithUsed(0, 0)];
  const packed = nodes.map((node) => score(node, 'binpack'));
  const spread = nodes.map((node) => score(node, 'spread'));
  expect(packed).toEqual([...packed].sort((a, b) => b - a));
  expect(spread).toEqual([...spread].sort((a, b) => a - b));
  expect([new Set(packed).size, Math.max(...packed) <= 10, Math.min(...spread) >= 0]).toEqual([
    4,
    true,
    true,
  ]);
});

const byTime = (slots: number, cores: number) =>
  new Demand(
    {
      containers: [needOf('main', slots, { cores })],
      gpuTypes: [],
      gpuUuids: [],
      placement: undefined,
    },
    10,
  );

test.each([
  ['as much time as its slots allow', 4, 40, 55, undefined],
  ['as much time as its slots are of a small GPU', 4, 44, 9, undefined],
  [
    'more time than that',
    4,
    45,
    9,
    'Nodes where 4 slots allow 44% of the time of a GPU, and container main asks for 45%: ' +
      'ask for 5 slots, or for less time',
  ],
])('a pod may ask for %s', (_, slots, cores, of, sentence) => {
  const verdict = judge(byTime(slots, cores), nodeOf(gpuOf('a', { slots: of })));
  expect('sentence' in verdict ? verdict.sentence : undefined).toBe(sentence);
});

test('a full GPU is described by the slots that the time of the pod takes', () => {
  const node = nodeOf(gpuOf('a', { slots: 55 }));
  const holding = new Map([['a', 50]]);
  node.hold({ uid: 'other', priority: 0, holding, demand: undefined });
  expect(judge(byTime(4, 20), node)).toEqual({
    sentence:
      'Nodes without 11 free slots on one GPU for container main (the most on one: 5 of 55)',
    resolvable: true,
  });
});
