import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { ANNOTATION } from '@nvidia-virtual/kube-common/names';
import type { ExtenderService } from '@nvidia-virtual/scheduler-ext/extender/extender-service';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { pino } from 'pino';
import { ControlPlane } from '../control-plane.js';
import { freePorts } from '../ports.js';
import { assigned, ClusterUnderTest, slotsSold } from './cluster-under-test.js';
import { container, gpu, inventory, pod } from './objects.js';
import { startExtender, startScheduler } from './scheduling.js';

/**
 * The extender with the rights of its service account, with a real kube-scheduler and API server.
 * Only the nodes are fake.
 */
let plane: ControlPlane;
let cluster: ClusterUnderTest;
let extender: ExtenderService;
/** Lines of the extender's log. */
let log: { readonly msg: string; readonly pod?: string }[] = [];

/** Microseconds. */
const EVICT_AFTER = 1_000_000;

const SCHEDULER = 'system:serviceaccount:nvidia-virtual:nvidia-virtual-scheduler';

function startLoggedExtender(port: number): Promise<ExtenderService> {
  const listen = { host: '127.0.0.1', port };
  return startExtender(
    { kubeconfig: plane.kubeconfig(SCHEDULER), listen, evictAfter: EVICT_AFTER },
    pino({ level: 'debug' }, { write: (line: string) => void log.push(JSON.parse(line)) }),
  );
}

/** Waits until the extender has seen it, too: the next pods get what is free by its knowledge. */
async function removePods(): Promise<void> {
  await cluster.removePods();
  await until(() => extender.cluster.counts.pods === 0, 'the extender has seen it');
}

/** Waits until the extender has logged this about the pod. */
async function logged(pod: string, msg: string): Promise<void> {
  await until(() => log.some((line) => line.pod === pod && line.msg === msg), msg);
}

/** The rights of the extender in addition to kube-scheduler's role. */
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
  const [port = 0] = await freePorts(1);
  extender = await startLoggedExtender(port);
  await startScheduler(plane, extender);
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
  afterEach(removePods);

  test('a binding records the GPUs of slots and keeps other annotations', async () => {
    await cluster.create(pod('first', { slots: 4, annotations: { mine: 'stays' } }));
    const bound = await cluster.bound('first');
    expect([bound.spec?.nodeName, assigned(bound), bound.metadata?.annotations?.['mine']]).toEqual([
      'one',
      { main: '4 of GPU-a' },
      'stays',
    ]);
  });

  test('slots of a container are on one GPU, or evenly divided among several', async () => {
    await cluster.create(pod('six', { slots: 6 }));
    expect(assigned(await cluster.bound('six'))).toEqual({ main: '6 of GPU-a' });
    await cluster.create(pod('another-six', { slots: 6 }));
    expect(assigned(await cluster.bound('another-six'))).toEqual({ main: '6 of GPU-b' });
    await cluster.create(pod('both', { slots: 6, annotations: { [ANNOTATION.gpus]: '2' } }));
    expect(assigned(await cluster.bound('both'))).toEqual({ main: '3 of GPU-a, 3 of GPU-b' });
  });

  test('a pod that fits no GPU waits with a reason until another is deleted', async () => {
    await cluster.create(pod('six', { slots: 6 }));
    await cluster.bound('six');
    await cluster.create(pod('another-six', { slots: 6 }));
    await cluster.bound('another-six');
    await cluster.create(pod('waits', { slots: 5 }));
    expect((await cluster.eventsOf('waits', 'FailedScheduling'))[0]).toContain(
      '0/1 nodes are available: 1 Nodes without 5 free slots on one GPU for container main ' +
        '(the most on one: 4 of 10).',
    );
    await cluster.delete('six');
    expect(assigned(await cluster.bound('waits'))).toEqual({ main: '5 of GPU-a' });
  });

  test('a request that no GPU can ever hold is reported, and preempts no pod', async () => {
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
      '1 Nodes where 2 slots of a GPU hold 26Gi, and container main asks for 40Gi: ask for 4 ' +
        'slots, or for less memory.',
    );
    expect((await cluster.get('small')).metadata?.deletionTimestamp).toBeUndefined();
  });

  test('an unhealthy GPU gets no pods until it recovers', async () => {
    await cluster.annotateNode('one', {
      'nvidia-virtual/inventory': inventory([gpu('GPU-a', { healthy: false }), gpu('GPU-b')]),
    });
    await until(
      () => extender.cluster.node('one')?.gpus[0]?.healthy === false,
      'the extender has seen it',
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

  test('pods with a controller are evicted from a lost GPU, budgets permitting', async () => {
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'set', uid: 'of-the-set' };
    const owned = (name: string) => {
      const made = pod(name, { slots: 2, annotations: { [ANNOTATION.gpuUuid]: 'GPU-a' } });
      const metadata = {
        ...made.metadata,
        labels: { app: name },
        ownerReferences: [{ ...owner, controller: true }],
      };
      return { ...made, metadata };
    };
    await cluster.create(owned('replaced'));
    await cluster.create(owned('protected'));
    await cluster.create(pod('bare', { annotations: { [ANNOTATION.gpuUuid]: 'GPU-a' } }));
    for (const name of ['replaced', 'protected', 'bare']) await cluster.bound(name);
    await cluster.run('protected'); // budgets do not count pods that never ran
    const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
    const selector = { matchLabels: { app: 'protected' } };
    const body = { metadata: { name: 'keeps' }, spec: { minAvailable: 1, selector } };
    await cluster.api.request({ method: 'POST', path: budgets, body });
    await cluster.annotateNode('one', {
      'nvidia-virtual/inventory': inventory([gpu('GPU-a', { healthy: false }), gpu('GPU-b')]),
    });
    expect((await cluster.eventsOf('replaced', 'GpuLost'))[0]).toBe(
      'Pod default/replaced is evicted, because GPU GPU-a of node one cannot be used. ' +
        'Its controller creates another pod.',
    );
    const names = async () => (await cluster.pods()).map(({ metadata }) => metadata?.name).sort();
    await until(async () => !(await names()).includes('replaced'), 'it is evicted');
    await cluster.eventsOf('protected', 'GpuLost');
    expect(await names()).toEqual(['bare', 'protected']);
    await cluster.api.request({ method: 'DELETE', path: `${budgets}/keeps` });
    await until(async () => !(await names()).includes('protected'), 'it is evicted later');
    expect(await names()).toEqual(['bare']);
    await cluster.annotateNode('one', {
      'nvidia-virtual/inventory': inventory([gpu('GPU-a'), gpu('GPU-b')]),
    });
  });

  test('a pod that was rejected before the extender knew of free slots is retried', async () => {
    await cluster.create(
      pod('whole', { slots: 10, annotations: { [ANNOTATION.gpuUuid]: 'GPU-a' } }),
    );
    await cluster.bound('whole');
    await cluster.annotateNode('one', {
      'nvidia-virtual/inventory': inventory([gpu('GPU-a'), gpu('GPU-b', { healthy: false })]),
    });
    await until(
      () => extender.cluster.node('one')?.gpus[1]?.healthy === false,
      'the extender has seen it',
    );
    await cluster.create(pod('rejected', { slots: 10 }));
    await cluster.eventsOf('rejected', 'FailedScheduling');
    // Only the extender is told, as if kube-scheduler had seen the event, and asked, before.
    extender.cluster.putNode('one', inventory([gpu('GPU-a'), gpu('GPU-b')]));
    expect(assigned(await cluster.bound('rejected'))).toEqual({ main: '10 of GPU-b' });
    await cluster.annotateNode('one', {
      'nvidia-virtual/inventory': inventory([gpu('GPU-a'), gpu('GPU-b')]),
    });
  });

  test("number 22: containers reuse slots of an init container, not a sidecar's", async () => {
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

  test('a pod that another scheduler placed counts on every GPU of its node', async () => {
    await cluster.create(pod('foreign', { slots: 7, spec: { nodeName: 'one' } }));
    await until(
      () => extender.cluster.node('one')?.gpus[1]?.unknown === 7,
      'the extender has seen it',
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
    // Three on each GPU: kube-scheduler would accept any two of six.
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

describe('one node of two GPUs, each with four free slots', () => {
  beforeAll(() => cluster.addNode('one', [gpu('GPU-a'), gpu('GPU-b')]));
  afterAll(() => cluster.removeNode('one'));
  beforeEach(() => {
    log = [];
  });
  afterEach(removePods);
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

  test('a higher priority gets one GPU although kube-scheduler counts free slots', async () => {
    await fill('low');
    await cluster.create(pod('high', { slots: 8, spec: { priorityClassName: 'high' } }));
    const { main } = assigned(await cluster.bound('high'));
    const others = main?.endsWith('a') ? ['b1', 'b2'] : ['a1', 'a2'];
    expect(await names()).toEqual([...others, 'high']);
  });

  test('a disruption budget is respected', async () => {
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

  test('a refused eviction is retried; its slots are free meanwhile', async () => {
    await fill('low');
    const binding = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/ours-eviction';
    await cluster.api.request({ method: 'DELETE', path: binding });
    // So few slots that kube-scheduler always counts enough free ones, and leaves preemption to the
    // extender.
    const annotations = { [ANNOTATION.gpuUuid]: 'GPU-a' };
    await cluster.create(
      pod('high', { slots: 7, annotations, spec: { priorityClassName: 'high' } }),
    );
    await logged('high', 'not all victims were evicted; the eviction is retried');
    await cluster.create(
      pod('small', { slots: 1, annotations, spec: { priorityClassName: 'low' } }),
    );
    await cluster.bound('small');
    expect(await names()).toEqual(['a1', 'a2', 'b1', 'b2', 'high', 'small']);
    await grant('eviction');
    expect(assigned(await cluster.bound('high'))).toEqual({ main: '7 of GPU-a' });
    expect(await names()).toEqual(expect.arrayContaining(['b1', 'b2', 'high']));
  });

  test('no pod is evicted for a pod that fits after the end of a terminating pod', async () => {
    await fill('low', { a1: 'high' });
    await cluster.delete('a1', 600);
    await cluster.create(pod('high', { slots: 7, spec: { priorityClassName: 'high' } }));
    await logged('high', 'waiting for pods that already terminate');
    expect(await names()).toEqual(['a1', 'a2', 'b1', 'b2', 'high']);
    await cluster.delete('a1');
    expect(assigned(await cluster.bound('high'))).toEqual({ main: '7 of GPU-a' });
    expect(await names()).toEqual(['a2', 'b1', 'b2', 'high']);
  });

  test('a terminating pod is the first victim', async () => {
    await fill('low', { b1: 'high' });
    await cluster.delete('b1', 600);
    await cluster.create(pod('high', { slots: 8, spec: { priorityClassName: 'high' } }));
    await until(async () => !(await names()).includes('b2'), 'pod b2 is evicted');
    await cluster.delete('b1');
    expect(assigned(await cluster.bound('high'))).toEqual({ main: '8 of GPU-b' });
    expect(await names()).toEqual(['a1', 'a2', 'high']);
  });

  test('no pod is evicted for one of its priority, or one that never preempts', async () => {
    await fill('high');
    // In this order: an eviction for the first pod would come before the log line of the second.
    await cluster.create(pod('never', { slots: 8, spec: { priorityClassName: 'polite' } }));
    await cluster.eventsOf('never', 'FailedScheduling');
    await cluster.create(pod('same', { slots: 8, spec: { priorityClassName: 'high' } }));
    await logged('same', 'no pod can be evicted for it');
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
  afterEach(removePods);

  test('number 3: pods that fit are bound at once, and no slot is used twice', async () => {
    await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        cluster.create(pod(`storm-${i}`, { slots: 1 + (i % 3) })),
      ),
    );
    const boundSlots = async () =>
      Object.values(slotsSold(await cluster.pods())).reduce((sum, slots) => sum + slots, 0);
    await until(async () => (await boundSlots()) >= 78, 'nearly all slots are sold');
    for (const slots of Object.values(slotsSold(await cluster.pods())))
      expect(slots).toBeLessThanOrEqual(10);
  });

  test('number 18: a bound pod that never starts blocks no other pod', async () => {
    await cluster.create(pod('stuck', { slots: 10 }));
    const { spec } = await cluster.bound('stuck');
    // No kubelet will ever start it. The next pod is bound to the same node.
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

  test('number 18: equal pods get different GPUs, each by its own name', async () => {
    await Promise.all(
      Array.from({ length: 8 }, (_, i) => cluster.create(pod(`equal-${i}`, { slots: 10 }))),
    );
    const bound = await Promise.all(
      Array.from({ length: 8 }, (_, i) => cluster.bound(`equal-${i}`)),
    );
    expect(new Set(bound.map((one) => assigned(one)['main'])).size).toBe(8);
  });

  test('a restarted extender restores the used slots from the pods', async () => {
    await cluster.create(pod('before', { slots: 7 }));
    await cluster.bound('before');
    const { port } = extender;
    await extender.end();
    extender = await startLoggedExtender(port);
    await cluster.create(pod('after', { slots: 3 }));
    const [before, after] = [await cluster.bound('before'), await cluster.bound('after')];
    expect([after.spec?.nodeName, slotsSold([before, after])]).toEqual([
      before.spec?.nodeName,
      { [assigned(before)['main']?.slice('7 of '.length) ?? '']: 10 },
    ]);
  });
});
