import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { V1Node, V1Pod } from '@kubernetes/client-node';
import { readInventory } from '@nvidia-virtual/kube-common/assignment';
import {
  GPU_LOST_CONDITION,
  INVENTORY_ANNOTATION,
  SCHEDULER_NAME,
} from '@nvidia-virtual/kube-common/names';
import { eventually, until } from '@nvidia-virtual/service/testing/eventually';
import { assigned } from './scheduler/cluster-under-test.js';
import { container } from './scheduler/objects.js';
import { TwoGpuScene } from './scheduler/two-gpu-scene.js';

const scene = new TwoGpuScene({ controllerManager: true, evictAfter: 1_000_000 });

beforeAll(async () => {
  await scene.start();
  await scene.startScheduling();
});
afterAll(async () => {
  await scene.stopScheduling();
  await scene.end();
});

const nodeObject = () => scene.cluster.api.request<V1Node>({ path: '/api/v1/nodes/node-1' });

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
  await scene.cluster.api.request({ method: 'POST', path, body });
}

/** The pod of the Deployment, once it is bound. */
function boundPod(except?: string): Promise<V1Pod> {
  return until(async () => {
    const pods = await scene.cluster.pods();
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
  await until(
    () => scene.extender.cluster.node('node-1')?.gpus[0]?.uuid === uuids[0],
    'it is known',
  );
  await createDeployment();
  const former = await boundPod();
  const lost = uuids.findIndex((uuid) => assigned(former)['main'] === `4 of ${uuid}`);
  scene.node.fail(lost);
  const next = await boundPod(former.metadata?.name);
  expect(assigned(next)).toEqual({ main: `4 of ${uuids[1 - lost]}` });
  // The condition is written after the annotation that the scheduler follows.
  await eventually(async () => {
    const { status } = await nodeObject();
    expect(status?.conditions?.find(({ type }) => type === GPU_LOST_CONDITION)).toMatchObject({
      status: 'True',
      message: expect.stringContaining(uuids[lost] ?? ''),
    });
  });
});
