import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { CoreV1Event, V1Node, V1NodeCondition } from '@kubernetes/client-node';
import { NodeObject } from '@nvidia-virtual/device-plugin/node-object';
import { NodeUnderTest } from '@nvidia-virtual/device-plugin/testing/node-under-test';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { readInventory } from '@nvidia-virtual/kube-common/assignment';
import {
  GPU_LOST_CONDITION,
  INVENTORY_ANNOTATION,
  PROBLEMS_ANNOTATION,
} from '@nvidia-virtual/kube-common/names';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { ControlPlane } from './control-plane.js';

const USER = 'device-plugin';
const RULES = [
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'patch'] },
  { apiGroups: [''], resources: ['nodes/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

let plane: ControlPlane;
let admin: ApiServer;
let node: NodeUnderTest;
let kubeconfig: string;

beforeAll(async () => {
  plane = await ControlPlane.start();
  admin = ApiServer.load(plane.adminKubeconfig);
  kubeconfig = plane.kubeconfig(USER);
  await post('/apis/rbac.authorization.k8s.io/v1/clusterroles', {
    metadata: { name: USER },
    rules: RULES,
  });
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: USER };
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: USER }];
  await post('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
    metadata: { name: USER },
    roleRef,
    subjects,
  });
});
afterAll(async () => {
  admin.close();
  await plane.stop();
});

beforeEach(async () => {
  node = new NodeUnderTest();
  await node.kubelet.start();
  await post('/api/v1/nodes', { metadata: { name: 'node-1', annotations: { other: 'stays' } } });
});
afterEach(async () => {
  await node.remove();
  await admin.request({ method: 'DELETE', path: '/api/v1/nodes/node-1' });
  // The next test waits for events of its own.
  await admin.request({ method: 'DELETE', path: '/api/v1/namespaces/default/events' });
});

const post = (path: string, body: object) => admin.request({ method: 'POST', path, body });
const annotations = async () =>
  (await admin.request<V1Node>({ path: '/api/v1/nodes/node-1' })).metadata?.annotations ?? {};
const inventory = async () => readInventory((await annotations())[INVENTORY_ANNOTATION])?.gpus;
const offered = (count: number) =>
  eventually(() => expect(node.kubelet.healthy).toHaveLength(count));

async function condition(): Promise<V1NodeCondition | undefined> {
  const { status } = await admin.request<V1Node>({ path: '/api/v1/nodes/node-1' });
  return status?.conditions?.find(({ type }) => type === GPU_LOST_CONDITION);
}

async function events(): Promise<CoreV1Event[]> {
  const query = { fieldSelector: 'involvedObject.kind=Node,involvedObject.name=node-1' };
  return (
    await admin.request<{ items: CoreV1Event[] }>({
      path: '/api/v1/namespaces/default/events',
      query,
    })
  ).items;
}

test("the node's annotation describes the GPUs; other annotations are kept", async () => {
  node.startPlugin(['--kubeconfig', kubeconfig]);
  const both = await node.startProxy({ gpus: 2 });
  await eventually(async () => expect(await inventory()).toHaveLength(2));
  const gpu = {
    uuid: expect.stringMatching(/^GPU-/),
    name: 'Simulated GPU',
    slots: 10,
    mode: 'exclusive',
    healthy: true,
  };
  expect((await inventory())?.[0]).toEqual({
    ...gpu,
    memory: 140 * 2 ** 30,
    slotMemory: expect.any(Number),
  });
  expect((await inventory())?.[0]?.slotMemory).toBeLessThanOrEqual(14 * 2 ** 30);
  expect(await annotations()).toMatchObject({ other: 'stays' });
  await both.end();
  node.fail(1);
  await node.startProxy({ gpus: 2 });
  await eventually(async () =>
    expect((await inventory())?.map(({ healthy }) => healthy)).toEqual([true, false]),
  );
});

test('slots of a fixed size are as many as fit on a GPU, or none, which is an event', async () => {
  node.startPlugin(['--kubeconfig', kubeconfig]);
  const fitting = await node.startProxy({ slotMemory: '11GiB' });
  await offered(12);
  await eventually(async () =>
    expect(await inventory()).toMatchObject([{ slots: 12, slotMemory: 11 * 2 ** 30 }]),
  );
  await fitting.end();
  await node.startProxy({ slotMemory: '200GiB' });
  await offered(0);
  await eventually(async () => expect(await inventory()).toMatchObject([{ slots: 0 }]));
  await eventually(async () =>
    expect((await events()).find(({ reason }) => reason === 'GpuSlotsNotOffered')?.message).toMatch(
      'has 140 GiB, less than one slot of 200 GiB and its context',
    ),
  );
});

test('event and condition of a lost GPU name it', async () => {
  node.startPlugin(['--kubeconfig', kubeconfig]);
  const both = await node.startProxy({ gpus: 2 });
  await offered(20);
  await eventually(async () => expect((await condition())?.status).toBe('False'));
  await both.end();
  node.fail(1);
  await node.startProxy({ gpus: 2 });
  await eventually(async () =>
    expect((await events()).map(({ reason }) => reason)).toContain('GpuSlotsUnhealthy'),
  );
  const lost = both.log.flatMap(({ gpus }) => (gpus as { uuid: string }[] | undefined) ?? [])[1]
    ?.uuid;
  const sentence = `GPU ${lost} (Simulated GPU) cannot be used`;
  expect((await events()).find(({ reason }) => reason === 'GpuSlotsUnhealthy')?.message).toContain(
    sentence,
  );
  await eventually(async () =>
    expect(await condition()).toMatchObject({
      status: 'True',
      reason: 'GpuLost',
      message: expect.stringContaining(sentence),
    }),
  );
});

test("number 21: NVIDIA's plugin is the reason in an event, and no GPU is described", async () => {
  node.kubelet.allocatable = [{ resourceName: 'nvidia.com/gpu', deviceIds: ['0'] }];
  node.startPlugin(['--kubeconfig', kubeconfig]);
  await node.startProxy();
  const offers = async () =>
    (await events()).find(({ message }) => message?.includes('Remove one of the two from this'));
  await eventually(async () => expect(await offers()).toBeDefined());
  expect(await offers()).toMatchObject({ type: 'Warning', reason: 'GpuSlotsNotOffered', count: 1 });
  await eventually(async () => expect(await inventory()).toEqual([]));
  const problems = async () => (await annotations())[PROBLEMS_ANNOTATION];
  await eventually(async () =>
    expect(JSON.parse((await problems()) ?? '[]')).toEqual([(await offers())?.message]),
  );
  node.kubelet.allocatable = [];
  await eventually(async () => expect(await inventory()).toHaveLength(1));
  expect(await problems()).toBeUndefined();
});

test('the count of an existing event is increased', async () => {
  const object = new NodeObject(admin, 'node-1');
  const trouble = { reason: 'GpuSlotsNotOffered', message: 'a reason' } as const;
  await object.warn(trouble, 1);
  await object.warn(trouble, 2);
  expect(
    (await events()).filter(({ message }) => message === 'a reason').map(({ count }) => count),
  ).toEqual([2]);
});

test('slots do not need the API server, which is informed when it is back', async () => {
  await plane.daemon('kube-apiserver').kill();
  const plugin = node.startPlugin(['--kubeconfig', kubeconfig]);
  await node.startProxy();
  await offered(10);
  const { mounts } = await node.kubelet.allocate(node.kubelet.healthy.slice(0, 1));
  expect(mounts.map(({ containerPath }) => containerPath)).toContain('/run/nvidia-virtual');
  await eventually(() =>
    expect(plugin.said('The annotation and events of node node-1 cannot be written')).toBe(true),
  );
  plane.daemon('kube-apiserver').start();
  await plane.ready();
  await eventually(async () => expect(await inventory()).toHaveLength(1));
});
