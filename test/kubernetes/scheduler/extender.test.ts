import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import { ExtenderService } from '@nvidia-virtual/scheduler-ext/extender/extender-service';
import { schedulerConfiguration } from '@nvidia-virtual/scheduler-ext/extender/scheduler-configuration';
import { pino } from 'pino';
import { ControlPlane } from '../control-plane.js';
import { assigned, ClusterUnderTest, slotsSold, until } from './cluster-under-test.js';
import { container, gpu, inventory, pod } from './objects.js';

/**
 * The extender as its service account sees the cluster, beside a kube-scheduler, before an API
 * server; only nodes are made of paper.
 */
let plane: ControlPlane;
let cluster: ClusterUnderTest;
let extender: ExtenderService;

const SCHEDULER = 'system:serviceaccount:nvidia-virtual:nvidia-virtual-scheduler';

function startExtender(port = 0): Promise<ExtenderService> {
  const listen = { host: '127.0.0.1', port };
  const kubeconfig = plane.kubeconfig(SCHEDULER);
  return ExtenderService.start(
    { kubeconfig, listen, strategy: 'binpack', http: undefined, logLevel: 'info' },
    pino({ level: 'silent' }),
  );
}

/** What the extender needs beyond kube-scheduler's own role. */
async function allowEviction(): Promise<void> {
  const rules = [{ apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] }];
  const path = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
  await cluster.api.request({
    method: 'POST',
    path,
    body: { kind: 'ClusterRole', metadata: { name: 'eviction' }, rules },
  });
  await grant('eviction');
}

async function grant(role: string): Promise<void> {
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role };
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: SCHEDULER }];
  const name = `ours-${role.replace(':', '-')}`;
  const body = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef,
    subjects,
  };
  await cluster.api.request({
    method: 'POST',
    path: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
    body,
  });
}

async function makePriority(
  name: string,
  value: number,
  preemptionPolicy = 'PreemptLowerPriority',
): Promise<void> {
  const body = {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value,
    preemptionPolicy,
  };
  await cluster.api.request({
    method: 'POST',
    path: '/apis/scheduling.k8s.io/v1/priorityclasses',
    body,
  });
}

beforeAll(async () => {
  plane = await ControlPlane.start();
  cluster = new ClusterUnderTest(plane.adminKubeconfig);
  await grant('system:kube-scheduler');
  await allowEviction();
  await makePriority('low', 10);
  await makePriority('high', 1000);
  await makePriority('polite', 2000, 'Never');
  extender = await startExtender();
  await plane.startScheduler(
    'kube-scheduler',
    schedulerConfiguration(`http://127.0.0.1:${extender.port}`, 'binpack'),
  );
});
afterAll(async () => {
  await plane?.daemon('kube-scheduler').stop();
  await extender?.end();
  cluster?.api.close();
  await plane?.stop();
});

describe('one node of two GPUs', () => {
  beforeAll(() => cluster.addNode('one', [gpu('GPU-a'), gpu('GPU-b')]));
  afterAll(() => cluster.removeNode('one'));
  afterEach(() => cluster.removePods());

  test('a binding says on which GPU the slots lie, and leaves the other annotations of the pod alone', async () => {
    await cluster.create(pod('first', { slots: 4, annotations: { mine: 'stays' } }));
    const bound = await cluster.bound('first');
    expect([bound.spec?.nodeName, assigned(bound), bound.metadata?.annotations?.['mine']]).toEqual([
      'one',
      { main: '4 of GPU-a' },
      'stays',
    ]);
  });

  test('slots of one container lie on one GPU, those of several GPUs evenly', async () => {
    await cluster.create(pod('six', { slots: 6 }));
    expect(assigned(await cluster.bound('six'))).toEqual({ main: '6 of GPU-a' });
    await cluster.create(pod('another-six', { slots: 6 }));
    expect(assigned(await cluster.bound('another-six'))).toEqual({ main: '6 of GPU-b' });
    await cluster.create(pod('both', { slots: 6, annotations: { [ANNOTATION.gpus]: '2' } }));
    expect(assigned(await cluster.bound('both'))).toEqual({ main: '3 of GPU-a, 3 of GPU-b' });
  });

  test('a pod that fits no single GPU waits with figures, and goes on when another one is deleted', async () => {
    await cluster.create(pod('six', { slots: 6 }));
    await cluster.bound('six');
    await cluster.create(pod('another-six', { slots: 6 }));
    await cluster.bound('another-six');
    await cluster.create(pod('waits', { slots: 5 }));
    expect((await cluster.eventsOf('waits', 'FailedScheduling'))[0]).toContain(
      '0/1 nodes are available: 1 Nodes without 5 free slots on one GPU for container main (the most on one: 4 of 10).',
    );
    await cluster.delete('six');
    expect(assigned(await cluster.bound('waits'))).toEqual({ main: '5 of GPU-a' });
  });

  test('what no GPU can ever hold is said, and nobody is preempted for it', async () => {
    await cluster.create(pod('small', { spec: { priorityClassName: 'low' } }));
    await cluster.bound('small');
    await cluster.create(
      pod('asks', {
        slots: 2,
        annotations: { [ANNOTATION.memory]: '40Gi' },
        spec: { priorityClassName: 'high' },
      }),
    );
    expect((await cluster.eventsOf('asks', 'FailedScheduling'))[0]).toContain(
      '1 Nodes where 2 slots of a GPU hold 26Gi, and container main asks for 40Gi: ask for 4 slots, or for less memory.',
    );
    expect((await cluster.get('small')).metadata?.deletionTimestamp).toBeUndefined();
  });

  test('an unhealthy GPU gets no pod, and gets them again when it is well', async () => {
    await cluster.annotateNode('one', {
      'nvidia-virtual/inventory': inventory([gpu('GPU-a', { healthy: false }), gpu('GPU-b')]),
    });
    await until(
      'the extender has seen it',
      () => extender.cluster.node('one')?.gpus[0]?.healthy === false,
    );
    await cluster.create(pod('first', { slots: 10 }));
    expect(assigned(await cluster.bound('first'))).toEqual({ main: '10 of GPU-b' });
    await cluster.create(pod('second', { slots: 10 }));
    await cluster.eventsOf('second', 'FailedScheduling');
    await cluster.annotateNode('one', {
      'nvidia-virtual/inventory': inventory([gpu('GPU-a'), gpu('GPU-b')]),
    });
    expect(assigned(await cluster.bound('second'))).toEqual({ main: '10 of GPU-a' });
  });

  test('a pod that kube-scheduler asked about before the extender knew of free slots is tried again', async () => {
    await cluster.create(
      pod('whole', { slots: 10, annotations: { [ANNOTATION.gpuUuid]: 'GPU-a' } }),
    );
    await cluster.bound('whole');
    await cluster.annotateNode('one', {
      'nvidia-virtual/inventory': inventory([gpu('GPU-a'), gpu('GPU-b', { healthy: false })]),
    });
    await until(
      'the extender has seen it',
      () => extender.cluster.node('one')?.gpus[1]?.healthy === false,
    );
    await cluster.create(pod('waits', { slots: 10 }));
    await cluster.eventsOf('waits', 'FailedScheduling');
    // Only the extender hears of it, as if kube-scheduler had heard, and asked, before.
    extender.cluster.putNode('one', inventory([gpu('GPU-a'), gpu('GPU-b')]));
    expect(assigned(await cluster.bound('waits'))).toEqual({ main: '10 of GPU-b' });
    await cluster.annotateNode('one', {
      'nvidia-virtual/inventory': inventory([gpu('GPU-a'), gpu('GPU-b')]),
    });
  });

  test('number 22: slots of an init container are those of the containers after it; a sidecar keeps its own', async () => {
    const initContainers = [
      container('prepare', 6),
      container('sidecar', 2, { restartPolicy: 'Always' }),
      container('late', 5),
    ];
    const containers = [container('main', 4), container('other', 4)];
    await cluster.create(pod('many', { spec: { initContainers, containers } }));
    expect(assigned(await cluster.bound('many'))).toEqual({
      prepare: '6 of GPU-a',
      sidecar: '2 of GPU-a',
      late: '5 of GPU-a',
      main: '4 of GPU-a',
      other: '4 of GPU-a',
    });
    await cluster.create(pod('rest', { slots: 10 }));
    expect(assigned(await cluster.bound('rest'))).toEqual({ main: '10 of GPU-b' });
  });

  test('a pod that another scheduler placed counts on every GPU that may serve it', async () => {
    await cluster.create(pod('foreign', { slots: 7, spec: { nodeName: 'one' } }));
    await until(
      'the extender has seen it',
      () => extender.cluster.node('one')?.gpus[1]?.unknown === 7,
    );
    await cluster.create(pod('five', { slots: 5 }));
    expect((await cluster.eventsOf('five', 'FailedScheduling'))[0]).toContain(
      'because 7 slots are held by pods that another scheduler placed',
    );
    await cluster.create(pod('three', { slots: 3 }));
    expect(assigned(await cluster.bound('three'))).toEqual({ main: '3 of GPU-a' });
  });

  test('victims of preemption free slots that share a GPU', async () => {
    const low = { priorityClassName: 'low' };
    // Three on each GPU: kube-scheduler is content with any two of six.
    for (let i = 0; i < 6; i++) {
      await cluster.create(pod(`low-${i}`, { slots: 3, spec: low }));
      await cluster.bound(`low-${i}`);
    }
    await cluster.create(pod('high', { slots: 7, spec: { priorityClassName: 'high' } }));
    const bound = await cluster.bound('high');
    const gone =
      6 -
      (await cluster.pods()).filter(({ metadata }) => metadata?.name?.startsWith('low-')).length;
    expect([Object.keys(assigned(bound)), gone]).toEqual([['main'], 2]);
    expect(slotsSold(await cluster.pods())).toEqual({
      'GPU-a': expect.any(Number),
      'GPU-b': expect.any(Number),
    });
    expect(Object.values(slotsSold(await cluster.pods())).sort()).toEqual([10, 9]);
  });
});

describe('one node of two GPUs, of which each is full but for four slots', () => {
  beforeAll(() => cluster.addNode('one', [gpu('GPU-a'), gpu('GPU-b')]));
  afterAll(() => cluster.removeNode('one'));
  afterEach(() => cluster.removePods());
  const names = async () => (await cluster.pods()).map(({ metadata }) => metadata?.name).sort();

  async function fill(
    priority: string,
    others: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    for (const name of ['a1', 'b1', 'a2', 'b2']) {
      const annotations = { [ANNOTATION.gpuUuid]: `GPU-${name[0]}` };
      const spec = { priorityClassName: others[name] ?? priority };
      await cluster.create(pod(name, { slots: 3, annotations, labels: { app: name }, spec }));
      await cluster.bound(name);
    }
  }

  test('a pod of higher priority gets one GPU, although kube-scheduler counts enough free slots', async () => {
    await fill('low');
    await cluster.create(pod('high', { slots: 8, spec: { priorityClassName: 'high' } }));
    const { main } = assigned(await cluster.bound('high'));
    const others = main?.endsWith('a') ? ['b1', 'b2'] : ['a1', 'a2'];
    expect(await names()).toEqual([...others, 'high']);
  });

  test('a disruption budget is kept', async () => {
    await fill('low');
    const metadata = { name: 'keep', namespace: 'default' };
    const spec = { minAvailable: 1, selector: { matchLabels: { app: 'a1' } } };
    const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata, spec };
    await cluster.api.request({
      method: 'POST',
      path: '/apis/policy/v1/namespaces/default/poddisruptionbudgets',
      body: budget,
    });
    await cluster.create(pod('high', { slots: 8, spec: { priorityClassName: 'high' } }));
    expect(assigned(await cluster.bound('high'))).toEqual({ main: '8 of GPU-b' });
    expect(await names()).toEqual(['a1', 'a2', 'high']);
    await cluster.api.request({
      method: 'DELETE',
      path: '/apis/policy/v1/namespaces/default/poddisruptionbudgets/keep',
    });
  });

  test('an eviction that is refused is tried again, and its slots are others’ meanwhile', async () => {
    await fill('low');
    const binding = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/ours-eviction';
    await cluster.api.request({ method: 'DELETE', path: binding });
    // So few slots that kube-scheduler always counts enough free ones, and leaves it to the
    // extender.
    const annotations = { [ANNOTATION.gpuUuid]: 'GPU-a' };
    await cluster.create(
      pod('high', { slots: 7, annotations, spec: { priorityClassName: 'high' } }),
    );
    await cluster.eventsOf('high', 'FailedScheduling');
    await sleep(2000);
    await cluster.create(
      pod('small', { slots: 1, annotations, spec: { priorityClassName: 'low' } }),
    );
    await cluster.bound('small');
    expect(await names()).toEqual(['a1', 'a2', 'b1', 'b2', 'high', 'small']);
    await grant('eviction');
    expect(assigned(await cluster.bound('high'))).toEqual({ main: '7 of GPU-a' });
    expect(await names()).toEqual(expect.arrayContaining(['b1', 'b2', 'high']));
  });

  test('nobody goes for a pod that fits once another one has ended that is being deleted', async () => {
    await fill('low', { a1: 'high' });
    await cluster.delete('a1', 600);
    await cluster.create(pod('high', { slots: 7, spec: { priorityClassName: 'high' } }));
    await cluster.eventsOf('high', 'FailedScheduling');
    await sleep(3000);
    expect(await names()).toEqual(['a1', 'a2', 'b1', 'b2', 'high']);
    await cluster.delete('a1');
    expect(assigned(await cluster.bound('high'))).toEqual({ main: '7 of GPU-a' });
    expect(await names()).toEqual(['a2', 'b1', 'b2', 'high']);
  });

  test('a pod that is being deleted is the first of the victims', async () => {
    await fill('low', { b1: 'high' });
    await cluster.delete('b1', 600);
    await cluster.create(pod('high', { slots: 8, spec: { priorityClassName: 'high' } }));
    await until('pod b2 is evicted', async () => !(await names()).includes('b2'));
    await cluster.delete('b1');
    expect(assigned(await cluster.bound('high'))).toEqual({ main: '8 of GPU-b' });
    expect(await names()).toEqual(['a1', 'a2', 'high']);
  });

  test('nobody goes for a pod of the same priority, nor for one that preempts nobody', async () => {
    await fill('high');
    await cluster.create(pod('same', { slots: 8, spec: { priorityClassName: 'high' } }));
    await cluster.create(pod('never', { slots: 8, spec: { priorityClassName: 'polite' } }));
    await cluster.eventsOf('same', 'FailedScheduling');
    await cluster.eventsOf('never', 'FailedScheduling');
    await sleep(3000);
    expect(await names()).toEqual(['a1', 'a2', 'b1', 'b2', 'never', 'same']);
  });
});

describe('four nodes of two GPUs', () => {
  const NODES = ['n1', 'n2', 'n3', 'n4'];
  beforeAll(async () => {
    for (const name of NODES)
      await cluster.addNode(name, [gpu(`GPU-${name}-a`), gpu(`GPU-${name}-b`)]);
  });
  afterAll(async () => {
    for (const name of NODES) await cluster.removeNode(name);
  });
  afterEach(() => cluster.removePods());

  test('number 3: of more pods than there are slots, those that fit are bound at once, and no slot is sold twice', async () => {
    await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        cluster.create(pod(`storm-${i}`, { slots: 1 + (i % 3) })),
      ),
    );
    const boundSlots = async () =>
      Object.values(slotsSold(await cluster.pods())).reduce((sum, slots) => sum + slots, 0);
    await until('nearly all slots are sold', async () => (await boundSlots()) >= 78);
    for (const slots of Object.values(slotsSold(await cluster.pods())))
      expect(slots).toBeLessThanOrEqual(10);
  });

  test('number 18: a bound pod that never starts holds up nobody else on its node', async () => {
    await cluster.create(pod('stuck', { slots: 10 }));
    const { spec } = await cluster.bound('stuck');
    // No kubelet will ever start it, and the next one is bound to the same node all the same.
    await cluster.create(
      pod('next', {
        slots: 10,
        spec: { nodeSelector: { 'kubernetes.io/hostname': spec?.nodeName ?? '' } },
      }),
    );
    const next = await cluster.bound('next');
    expect([next.spec?.nodeName, assigned(next)]).toEqual([
      spec?.nodeName,
      { main: `10 of GPU-${spec?.nodeName}-b` },
    ]);
  });

  test('number 18: of equal pods each one has its own GPU by its own name', async () => {
    await Promise.all(
      Array.from({ length: 8 }, (_, i) => cluster.create(pod(`equal-${i}`, { slots: 10 }))),
    );
    const bound = await Promise.all(
      Array.from({ length: 8 }, (_, i) => cluster.bound(`equal-${i}`)),
    );
    expect(new Set(bound.map((one) => assigned(one)['main'])).size).toBe(8);
  });

  test('an extender that is started anew knows from the pods what is sold', async () => {
    await cluster.create(pod('before', { slots: 7 }));
    await cluster.bound('before');
    const { port } = extender;
    await extender.end();
    extender = await startExtender(port);
    await cluster.create(pod('after', { slots: 3 }));
    const [before, after] = [await cluster.bound('before'), await cluster.bound('after')];
    expect([after.spec?.nodeName, slotsSold([before, after])]).toEqual([
      before.spec?.nodeName,
      { [assigned(before)['main']?.slice('7 of '.length) ?? '']: 10 },
    ]);
  });
});
