import type { V1PodDisruptionBudget } from '@kubernetes/client-node';
import { pino } from 'pino';
import { Cluster } from '../cluster/cluster.js';
import { gpuOf, inventoryOf, podOf } from '../testing/nodes.js';
import { protects } from './budget.js';
import { Preemption, type Preemptor } from './preemption.js';

const logger = pino({ level: 'silent' });

/** Pods by GPU, as `name:slots` or `name:slots:priority`. */
function clusterOf(gpus: Record<string, string[]>): Cluster {
  const cluster = new Cluster();
  cluster.putNode('node', inventoryOf(...Object.keys(gpus).map((uuid) => gpuOf(uuid))));
  for (const [uuid, pods] of Object.entries(gpus)) {
    for (const text of pods) {
      const [name = '', slots, priority = '0'] = text.split(':');
      const labels = { app: name };
      cluster.putPod(podOf(name, { node: 'node', priority: Number(priority), holding: new Map([[uuid, Number(slots)]]), labels }));
    }
  }
  return cluster;
}

async function victimsOf(
  cluster: Cluster,
  asked: readonly string[],
  { slots = 8, budgets = [] as V1PodDisruptionBudget[] } = {},
): Promise<{ readonly victims: string[]; readonly violations: number } | undefined> {
  const preemption = new Preemption({ cluster, strategy: 'binpack', budgets: async () => budgets, logger });
  const pod = podOf('high', { priority: 100, slots }) as Preemptor;
  const answer = await preemption.correct(pod, { node: { Pods: asked.map((UID) => ({ UID })), NumPDBViolations: 7 } });
  const { Pods, NumPDBViolations } = answer['node'] ?? {};
  return Pods ? { victims: Pods.map(({ UID }) => UID).sort(), violations: NumPDBViolations ?? 0 } : undefined;
}

test('victims that free what is needed are left as they are', async () => {
  const cluster = clusterOf({ a: ['a1:5', 'a2:5'], b: ['b1:5', 'b2:5'] });
  expect(await victimsOf(cluster, ['a1', 'a2'])).toEqual({ victims: ['a1', 'a2'], violations: 7 });
});

test('victims on several GPUs are exchanged for those that share one', async () => {
  const cluster = clusterOf({ a: ['a1:5', 'a2:5'], b: ['b1:5', 'b2:5'] });
  const corrected = await victimsOf(cluster, ['a1', 'b1']);
  expect([['a1,a2'], ['b1,b2']]).toContainEqual([corrected?.victims.join(',')]);
});

test('too few victims are made enough', async () => {
  expect(await victimsOf(clusterOf({ a: ['a1:4', 'a2:4'], b: ['b1:10:100'] }), ['a1'])).toEqual({ victims: ['a1', 'a2'], violations: 0 });
});

test('the fewest go, and the least important ones', async () => {
  expect((await victimsOf(clusterOf({ a: ['a1:5', 'a2:5'], b: ['b1:9'] }), ['a1', 'a2', 'b1'].slice(0, 1)))?.victims).toEqual(['b1']);
  expect((await victimsOf(clusterOf({ a: ['a1:9:50'], b: ['b1:5', 'b2:5'] }), ['b1']))?.victims).toEqual(['b1', 'b2']);
});

test('nobody of the same priority goes, and a node where that is not enough is left out', async () => {
  expect(await victimsOf(clusterOf({ a: ['a1:5', 'a2:5:100'] }), ['a1'])).toBeUndefined();
});

test('victims that hold no slots are for kube-scheduler to choose', async () => {
  const cluster = clusterOf({ a: ['a1:5', 'a2:5'], b: ['b1:5', 'b2:5'] });
  expect((await victimsOf(cluster, ['cpu-hog', 'a1', 'b1']))?.victims).toHaveLength(3);
  expect((await victimsOf(cluster, ['cpu-hog', 'a1', 'b1']))?.victims).toContain('cpu-hog');
});

test('violated budgets are counted anew for other victims', async () => {
  const budget = (app: string, disruptionsAllowed: number): V1PodDisruptionBudget => ({
    metadata: { namespace: 'default' },
    spec: { selector: { matchLabels: { app } } },
    status: { disruptionsAllowed, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
  });
  const cluster = clusterOf({ a: ['a1:4', 'a2:4'], b: ['b1:10:100'] });
  expect(await victimsOf(cluster, ['a1'], { budgets: [budget('a1', 0), budget('a2', 1)] })).toEqual({
    victims: ['a1', 'a2'],
    violations: 1,
  });
});

test('what was freed is kept for the pod, once kube-scheduler has chosen the node', async () => {
  const cluster = clusterOf({ a: ['a1:5', 'a2:5'] });
  await victimsOf(cluster, ['a1', 'a2']);
  cluster.putPod(podOf('high', { priority: 100, slots: 8, nominated: 'node' }));
  expect(cluster.node('node')?.promised.get('high')?.holding).toEqual(new Map([['a', 8]]));
});

test.each<[object, Record<string, string>, boolean]>([
  [{ matchLabels: { a: '1' } }, { a: '1', b: '2' }, true],
  [{ matchLabels: { a: '1' } }, { a: '2' }, false],
  [{}, {}, true],
  [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['1', '2'] }] }, { a: '2' }, true],
  [{ matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['1'] }] }, {}, true],
  [{ matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['1'] }] }, { a: '1' }, false],
  [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }, {}, false],
  [{ matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] }, {}, true],
])('a budget with selector %j and labels %j', (selector, labels, expected) => {
  const budget = { metadata: { namespace: 'x' }, spec: { selector } };
  expect(protects(budget, { namespace: 'x', labels })).toBe(expected);
  expect(protects(budget, { namespace: 'y', labels })).toBe(false);
});
