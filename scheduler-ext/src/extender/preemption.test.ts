import type { V1PodDisruptionBudget } from '@kubernetes/client-node';
import { pino } from 'pino';
import { Cluster } from '../cluster/cluster.js';
import { gpuOf, inventoryOf, inventoryWith, podOf } from '../testing/nodes.js';
import { protects } from './budget.js';
import { Preemption, type Preemptor } from './preemption.js';

const logger = pino({ level: 'silent' });

/** Seconds until a terminating pod should be gone. */
const LEAVES: Readonly<Record<string, number>> = { leaves: 30, stuck: -120 };

/** Pods by GPU, as `name:slots`, `name:slots:priority` or `name:slots:priority:leaves`. */
function clusterOf(
  gpus: Record<string, string[]>,
  cluster = new Cluster(),
  node = 'node',
): Cluster {
  cluster.putNode(node, inventoryOf(...Object.keys(gpus).map((uuid) => gpuOf(uuid))));
  for (const [uuid, pods] of Object.entries(gpus)) {
    for (const text of pods) {
      const [name = '', slots, priority = '0', leaves = ''] = text.split(':');
      const leavesAt = leaves === '' ? undefined : Date.now() + 1000 * (LEAVES[leaves] as number);
      const holding = new Map([[uuid, Number(slots)]]);
      cluster.putPod(
        podOf(name, { node, priority: Number(priority), holding, labels: { app: name }, leavesAt }),
      );
    }
  }
  return cluster;
}

async function victimsOf(
  cluster: Cluster,
  asked: readonly string[],
  {
    slots = 8,
    budgets = [] as V1PodDisruptionBudget[],
    nominated = undefined as string | undefined,
    meanwhile = () => {},
  } = {},
): Promise<{ readonly victims: string[]; readonly violations: number } | undefined> {
  const listed = async () => {
    meanwhile();
    return budgets;
  };
  const preemption = new Preemption({ cluster, strategy: 'binpack', budgets: listed, logger });
  const pod = podOf('high', { priority: 100, slots, nominated }) as Preemptor;
  cluster.putPod(pod);
  const answer = await preemption.correct(pod, {
    node: { Pods: asked.map((UID) => ({ UID })), NumPDBViolations: 7 },
  });
  const { Pods, NumPDBViolations } = answer['node'] ?? {};
  return Pods
    ? { victims: Pods.map(({ UID }) => UID).sort(), violations: NumPDBViolations ?? 0 }
    : undefined;
}

/** The victims and the awaited pods if kube-scheduler chose no victims. */
async function cheapest(
  cluster: Cluster,
  slots: number,
): Promise<Record<string, string> | undefined> {
  const preemption = new Preemption({
    cluster,
    strategy: 'binpack',
    budgets: async () => [],
    logger,
  });
  const nodes = [...cluster.nodes()].map(({ name }) => name);
  const found = await preemption.cheapest(
    podOf('high', { priority: 100, slots }) as Preemptor,
    nodes,
  );
  const names = (pods: readonly { readonly name: string }[]) => pods.map(({ name }) => name).join();
  return (
    found && { node: found.node, victims: names(found.victims), awaited: names(found.awaited) }
  );
}

test('victims that free enough are not changed', async () => {
  const cluster = clusterOf({ a: ['a1:5', 'a2:5'], b: ['b1:5', 'b2:5'] });
  expect(await victimsOf(cluster, ['a1', 'a2'])).toEqual({ victims: ['a1', 'a2'], violations: 7 });
});

test('victims on several GPUs are replaced by victims that share one', async () => {
  const cluster = clusterOf({ a: ['a1:5', 'a2:5'], b: ['b1:5', 'b2:5'] });
  const corrected = await victimsOf(cluster, ['a1', 'b1']);
  expect([['a1,a2'], ['b1,b2']]).toContainEqual([corrected?.victims.join(',')]);
});

test('missing victims are added', async () => {
  expect(await victimsOf(clusterOf({ a: ['a1:4', 'a2:4'], b: ['b1:10:100'] }), ['a1'])).toEqual({
    victims: ['a1', 'a2'],
    violations: 0,
  });
});

test('the fewest and least important pods become victims', async () => {
  expect(
    (
      await victimsOf(
        clusterOf({ a: ['a1:5', 'a2:5'], b: ['b1:9'] }),
        ['a1', 'a2', 'b1'].slice(0, 1),
      )
    )?.victims,
  ).toEqual(['b1']);
  expect(
    (await victimsOf(clusterOf({ a: ['a1:9:50'], b: ['b1:5', 'b2:5'] }), ['b1']))?.victims,
  ).toEqual(['b1', 'b2']);
});

test('pods of the same priority are no victims; a node without others is dropped', async () => {
  expect(await victimsOf(clusterOf({ a: ['a1:5', 'a2:5:100'] }), ['a1'])).toBeUndefined();
});

test('a pod without assignment is a victim only for the GPU that its node reports', async () => {
  const placed = [{ pod: 'foreign', gpus: [{ gpu: 'b', slots: 6 }] }];
  const victims = async (others: number) => {
    const cluster = clusterOf({ a: ['a1:6:50'], b: [`b1:${others}:100`] });
    cluster.putNode('node', inventoryWith({ placed }));
    cluster.putPod(podOf('foreign', { node: 'node', slots: 6, priority: 10 }));
    return (await cheapest(cluster, 8))?.['victims'];
  };
  expect([await victims(4), await victims(1)]).toEqual(['a1', 'foreign']);
});

test('victims that hold no slots are left to kube-scheduler', async () => {
  const cluster = clusterOf({ a: ['a1:5', 'a2:5'], b: ['b1:5', 'b2:5'] });
  expect((await victimsOf(cluster, ['cpu-hog', 'a1', 'b1']))?.victims).toHaveLength(3);
  expect((await victimsOf(cluster, ['cpu-hog', 'a1', 'b1']))?.victims).toContain('cpu-hog');
});

test('budget violations are counted again for other victims', async () => {
  const budget = (app: string, disruptionsAllowed: number): V1PodDisruptionBudget => ({
    metadata: { namespace: 'default' },
    spec: { selector: { matchLabels: { app } } },
    status: { disruptionsAllowed, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
  });
  const cluster = clusterOf({ a: ['a1:4', 'a2:4'], b: ['b1:10:100'] });
  expect(await victimsOf(cluster, ['a1'], { budgets: [budget('a1', 0), budget('a2', 1)] })).toEqual(
    {
      victims: ['a1', 'a2'],
      violations: 1,
    },
  );
});

test('freed slots are promised to the pod, once kube-scheduler has chosen the node', async () => {
  const cluster = clusterOf({ a: ['a1:5', 'a2:5'] });
  await victimsOf(cluster, ['a1', 'a2']);
  cluster.putPod(podOf('high', { priority: 100, slots: 8, nominated: 'node' }));
  expect(cluster.node('node')?.promised.get('high')?.holding).toEqual(new Map([['a', 8]]));
});

test.each<[string, (cluster: Cluster) => void]>([
  ['deleted', (cluster) => cluster.removePod('high')],
  ['bound', (cluster) => cluster.putPod(podOf('high', { node: 'elsewhere' }))],
  ['ended', (cluster) => cluster.putPod(podOf('high', { ended: true }))],
])('nothing is promised to a pod that is %s while its victims are searched', async (_, happens) => {
  const cluster = clusterOf({ a: ['a1:5', 'a2:5'] });
  const meanwhile = () => happens(cluster);
  await victimsOf(cluster, ['a1', 'a2'], { nominated: 'node', meanwhile });
  expect(cluster.node('node')?.promised.size).toBe(0);
});

test('nothing is evicted if a terminating pod frees enough, whatever its priority', async () => {
  const cluster = clusterOf({ a: ['a1:5:0', 'a2:5:1000:leaves'], b: ['b1:5', 'b2:5'] });
  expect(await cheapest(cluster, 5)).toEqual({ node: 'node', victims: '', awaited: 'a2' });
});

test('only pods that terminate where the pod fits are awaited', async () => {
  const cluster = clusterOf({ a: ['a1:5:0:leaves', 'a2:5'], b: ['b1:8::leaves', 'b2:2'] });
  expect(await cheapest(cluster, 8)).toEqual({ node: 'node', victims: '', awaited: 'b1' });
});

test('if this is not enough, terminating pods are victims without a cost', async () => {
  const cluster = clusterOf({ a: ['a1:4', 'a2:2:50', 'a3:4:1000:leaves'], b: ['b1:5:50', 'b2:5'] });
  expect(await cheapest(cluster, 8)).toEqual({ node: 'node', victims: 'a1', awaited: 'a3' });
  expect(
    await victimsOf(clusterOf({ a: ['a1:4', 'a2:4:0:leaves'], b: ['b1:10:100'] }), ['a1']),
  ).toEqual({
    victims: ['a1'],
    violations: 7,
  });
});

test('an overdue pod is neither awaited nor evicted again', async () => {
  expect(
    await cheapest(clusterOf({ a: ['a1:5:0:stuck', 'a2:5'], b: ['b1:5', 'b2:5'] }), 8),
  ).toEqual({
    ...{ node: 'node', victims: 'b1,b2', awaited: '' },
  });
  expect(await cheapest(clusterOf({ a: ['a1:5:0:stuck', 'a2:5'] }), 8)).toBeUndefined();
});

test('of very many nodes, those with terminating pods are tried first', async () => {
  const cluster = new Cluster();
  for (let index = 0; index < 200; index++)
    clusterOf({ a: [`p${index}:5:0${index === 150 ? ':leaves' : ''}`] }, cluster, `node-${index}`);
  expect(await cheapest(cluster, 8)).toEqual({ node: 'node-150', victims: '', awaited: 'p150' });
});

/** Counts the placements that are tried to find victims for a pod. */
async function placementsOf(cluster: Cluster, slots: number) {
  const preemption = new Preemption({
    ...{ cluster, strategy: 'binpack', logger },
    budgets: async () => [],
  });
  const pod = podOf('high', { priority: 100, slots }) as Preemptor;
  let placements = 0;
  pod.demand.strategy = (usual) => {
    placements++;
    return usual;
  };
  const found = await preemption.cheapest(
    pod,
    [...cluster.nodes()].map(({ name }) => name),
  );
  return { placements, found: found !== undefined };
}

test('a node where all victims would not suffice is tried once', async () => {
  const cluster = clusterOf({ a: ['a1:5:100'], b: ['b1:5:100', 'b2:1'], c: ['c1:9:100'] });
  expect(await placementsOf(cluster, 8)).toEqual({ placements: 1, found: false });
});

test('the placements that are tried for one pod are limited', async () => {
  const cluster = new Cluster();
  for (let node = 0; node < 100; node++) {
    const pods = (gpu: string) => Array.from({ length: 5 }, (_, at) => `${node}-${gpu}${at}:2`);
    const gpus = Object.fromEntries([...'abcdefgh'].map((gpu) => [gpu, pods(gpu)]));
    clusterOf(gpus, cluster, `node-${node}`);
  }
  const { placements, found } = await placementsOf(cluster, 8);
  expect(found).toBe(true);
  expect(placements).toBeLessThan(20_000);
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
  [{ matchExpressions: [{ key: 'constructor', operator: 'Exists' }] }, {}, false],
])('a budget with selector %j and labels %j', (selector, labels, expected) => {
  const budget = { metadata: { namespace: 'x' }, spec: { selector } };
  expect(protects(budget, { namespace: 'x', labels })).toBe(expected);
  expect(protects(budget, { namespace: 'y', labels })).toBe(false);
});

test('pods that wait at the same time read the disruption budgets once', async () => {
  const cluster = clusterOf({ a: ['low:8'] });
  let reads = 0;
  const budgets = async () => {
    reads++;
    return [];
  };
  const preemption = new Preemption({ cluster, strategy: 'binpack', budgets, logger });
  const pod = podOf('high', { priority: 100, slots: 8 }) as Preemptor;
  await Promise.all([preemption.cheapest(pod, ['node']), preemption.cheapest(pod, ['node'])]);
  await preemption.cheapest(pod, ['node']);
  expect(reads).toBe(2);
});
