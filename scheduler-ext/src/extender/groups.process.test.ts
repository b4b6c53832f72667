import { until } from '@nvidia-virtual/service/testing/eventually';
import { Cluster } from '../cluster/cluster.js';
import { gpuOf, inventoryOf, podOf } from '../testing/nodes.js';
import { Groups } from './groups.js';
import type { Preemptor } from './preemption.js';

let cluster: Cluster;
let ended: string[];
let groups: Groups;

function begin(afterFilter: number, afterBind = afterFilter): void {
  groups = new Groups({ cluster, strategy: 'binpack', afterFilter, afterBind });
}

function member(uid: string, slots: number, group = 'gang'): Preemptor {
  const pod = podOf(uid, { slots, group }) as Preemptor;
  cluster.putPod(pod);
  return pod;
}

const used = () => cluster.node('node')?.gpus.map((gpu) => gpu.used);

beforeEach(() => {
  ended = [];
  cluster = new Cluster((node, claimEnded) => claimEnded && ended.push(node.name));
  cluster.putNode('node', inventoryOf(gpuOf('a'), gpuOf('b')));
  cluster.putNode('other', inventoryOf(gpuOf('c')));
});
afterEach(() => groups.stop());

test('each member of a group claims slots of its own', () => {
  begin(60_000);
  expect(groups.claim(member('one', 6), ['node', 'other'])).toEqual(['node']);
  expect(groups.claim(member('two', 6), ['node', 'other'])).toEqual(['node']);
  expect(groups.claim(member('three', 6), ['node', 'other'])).toEqual(['other']);
  expect([used(), ended]).toEqual([[6, 6], []]);
});

test('if a member finds no node, the group has no claims until it is tried again', () => {
  begin(60_000);
  const members = ['one', 'two', 'three', 'four'].map((uid) => member(uid, 6));
  const filtered = (index: number, nodes: string[]) => {
    groups.filtering(members[index] as Preemptor);
    return groups.claim(members[index] as Preemptor, nodes);
  };
  filtered(0, ['node']);
  filtered(1, ['node']);
  expect(filtered(2, [])).toEqual([]);
  expect([used(), ended]).toEqual([
    [0, 0],
    ['node', 'node'],
  ]);
  expect(filtered(3, ['other', 'node'])).toEqual(['other', 'node']);
  expect(cluster.node('other')?.gpus[0]?.used).toBe(0);
  filtered(0, ['node']);
  filtered(1, ['node']);
  expect(used()).toEqual([6, 6]);
});

test('a group fails if the nodes of a member are taken meanwhile', () => {
  begin(60_000);
  groups.claim(member('one', 6), ['node']);
  cluster.reserve(member('taker', 6), 'other', new Map([['c', 6]]));
  expect(groups.claim(member('two', 6), ['other'])).toEqual([]);
  expect([used(), ended]).toEqual([[0, 0], ['node']]);
});

test('a claim ends with a new claim, a binding, or the pod', () => {
  begin(60_000);
  const [one, two] = [member('one', 6), member('two', 4)];
  groups.claim(one, ['node']);
  groups.filtering(one);
  groups.claim(one, ['other']);
  expect(used()).toEqual([0, 0]);
  groups.claim(two, ['node']);
  cluster.reserve(two, 'node', new Map([['b', 4]]));
  expect(used()).toEqual([0, 4]);
  cluster.removePod('one');
  expect(cluster.node('other')?.gpus[0]?.used).toBe(0);
  cluster.putPod(podOf('two', { node: 'node', holding: new Map([['b', 4]]), group: 'gang' }));
  cluster.unclaim('two');
  expect(used()).toEqual([0, 4]);
});

test('claims end some time after the last request for their group', async () => {
  begin(50);
  groups.claim(member('one', 6), ['node']);
  groups.claim(member('two', 6), ['node']);
  await until(() => ended.length === 2);
  expect(used()).toEqual([0, 0]);
});

test('after a binding of a member, the others keep their claims longer', async () => {
  begin(50, 600_000);
  const one = member('one', 6);
  groups.claim(one, ['node']);
  groups.claim(member('two', 6), ['node']);
  groups.binding(one);
  groups.claim(member('elsewhere', 6, 'others'), ['other']);
  await until(() => ended.includes('other'));
  expect(used()).toEqual([6, 6]);
});
