import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { V1Node, V1Pod } from '@kubernetes/client-node';
import { NodeUnderTest } from '@nvidia-virtual/device-plugin/testing/node-under-test';
import { readInventory } from '@nvidia-virtual/kube-common/assignment';
import {
  GPU_LOST_CONDITION,
  INVENTORY_ANNOTATION,
  SCHEDULER_NAME,
} from '@nvidia-virtual/kube-common/names';
import type { ExtenderService } from '@nvidia-virtual/scheduler-ext/extender/extender-service';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { ControlPlane } from './control-plane.js';
import { assigned, ClusterUnderTest } from './scheduler/cluster-under-test.js';
import { container, gpu } from './scheduler/objects.js';
import { startExtender, startScheduler } from './scheduler/scheduling.js';

/** gpu-proxy, device plugin, extender, kube-scheduler and controllers; only the kubelet is fake. */
let plane: ControlPlane;
let cluster: ClusterUnderTest;
let extender: ExtenderService;
let node: NodeUnderTest;

beforeAll(async () => {
  plane = await ControlPlane.start({ controllerManager: true });
  cluster = new ClusterUnderTest(plane.adminKubeconfig);
  await cluster.addNode('node-1', [gpu('GPU-a'), gpu('GPU-b')]);
  node = new NodeUnderTest();
  await node.kubelet.start();
  node.startPlugin(['--kubeconfig', plane.adminKubeconfig]);
  await node.startProxy({ gpus: 2 });
  extender = await startExtender({ kubeconfig: plane.adminKubeconfig, evictAfter: 1_000_000 });
  await startScheduler(plane, extender);
});
afterAll(async () => {
  await plane?.daemon('kube-scheduler').stop();
  await extender?.end();
  await node?.remove();
  cluster?.api.close();
  await plane?.stop();
});

const nodeObject = () => cluster.api.request<V1Node>({ path: '/api/v1/nodes/node-1' });

async function createDeployment(): Promise<void> {
  const labels = { app: 'served' };
  const spec = {
    schedulerName: SCHEDULER_NAME,
    terminationGracePeriodSeconds: 0,
    // Nothing reports that the node is ready.
    tolerations: [{ operator: 'Exists' }],
    containers: [container('main', 4)],
  };
  const body = {
    metadata: { name: 'served' },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
  const path = '/apis/apps/v1/namespaces/default/deployments';
  await cluster.api.request({ method: 'POST', path, body });
}

/** The pod of the Deployment, once it is bound. */
function boundPod(except?: string): Promise<V1Pod> {
  return until(async () => {
    const pods = await cluster.pods();
    return pods.find(({ metadata, spec }) => spec?.nodeName && metadata?.name !== except);
  }, 'a pod is bound');
}

test('a pod whose GPU is lost is replaced on another GPU, without an operator', async () => {
  const uuids = await until(async () => {
    const { metadata } = await nodeObject();
    const gpus = readInventory(metadata?.annotations?.[INVENTORY_ANNOTATION])?.gpus ?? [];
    const described = gpus.filter(({ name }) => name === 'Simulated GPU');
    return described.length === 2 && described.map(({ uuid }) => uuid);
  }, 'the device plugin has described the GPUs');
  await until(() => extender.cluster.node('node-1')?.gpus[0]?.uuid === uuids[0], 'it is known');
  await createDeployment();
  const former = await boundPod();
  const lost = uuids.findIndex((uuid) => assigned(former)['main'] === `4 of ${uuid}`);
  node.fail(lost);
  const next = await boundPod(former.metadata?.name);
  expect(assigned(next)).toEqual({ main: `4 of ${uuids[1 - lost]}` });
  const { status } = await nodeObject();
  expect(status?.conditions?.find(({ type }) => type === GPU_LOST_CONDITION)).toMatchObject({
    status: 'True',
    message: expect.stringContaining(uuids[lost] ?? ''),
  });
});
