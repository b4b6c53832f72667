import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import { NodeUnderTest } from '@nvidia-virtual/device-plugin/testing/node-under-test';
import type { ProcessUnderTest } from '@nvidia-virtual/device-plugin/testing/process-under-test';
import { AdminClient } from '@nvidia-virtual/node-state/admin/client';
import { SPECIFICATION } from '@nvidia-virtual/node-state/paths';
import type { ExtenderService } from '@nvidia-virtual/scheduler-ext/extender/extender-service';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { ControlPlane } from './control-plane.js';
import { assigned, ClusterUnderTest } from './scheduler/cluster-under-test.js';
import { gpu, pod } from './scheduler/objects.js';
import { startExtender, startScheduler } from './scheduler/scheduling.js';

/** gpu-proxy, device plugin, extender and kube-scheduler; no containers run. */
let plane: ControlPlane;
let cluster: ClusterUnderTest;
let extender: ExtenderService;
let node: NodeUnderTest;
let proxy: ProcessUnderTest;

beforeAll(async () => {
  plane = await ControlPlane.start();
  cluster = new ClusterUnderTest(plane.adminKubeconfig);
  await cluster.addNode('node-1', [gpu('GPU-a'), gpu('GPU-b')]);
  node = new NodeUnderTest();
  await node.kubelet.start();
  node.startPlugin(['--kubeconfig', plane.adminKubeconfig]);
  proxy = await node.startProxy({ gpus: 2, kubeconfig: plane.adminKubeconfig });
  extender = await startExtender({ kubeconfig: plane.adminKubeconfig });
  await startScheduler(plane, extender);
});
afterAll(async () => {
  await plane?.daemon('kube-scheduler').stop();
  await extender?.end();
  await node?.remove();
  cluster?.api.close();
  await plane?.stop();
});

/** Makes an allocation on the second GPU, as if the first program of the pod had connected. */
async function bind({ metadata = {} }: V1Pod, slots: number): Promise<readonly string[]> {
  const client = await AdminClient.connect(node.state);
  const { gpus } = await client.call('listGpus', {});
  const uuids = gpus.map(({ uuid }) => uuid);
  const { id } = await client.call('createAllocation', { gpus: uuids.slice(1) });
  client.close();
  await proxy.end();
  const file = path.join(node.state, 'allocations', id, SPECIFICATION);
  const specification = JSON.parse(readFileSync(file, 'utf8')) as object;
  const { name, namespace, uid } = metadata;
  const given = {
    owner: { namespace, pod: name, podUid: uid, container: 'main' },
    slots: Array.from({ length: slots }, (_, index) => `slot-${index}`),
  };
  writeFileSync(file, JSON.stringify({ ...specification, ...given }));
  proxy = await node.startProxy({ gpus: 2, kubeconfig: plane.adminKubeconfig });
  return uuids;
}

test('a pod that names its node takes slots of its GPU only, once that is known', async () => {
  await cluster.create(pod('foreign', { slots: 10, spec: { nodeName: 'node-1' } }));
  const gpus = () => extender.cluster.node('node-1')?.gpus ?? [];
  const isKnown = () => gpus().every(({ unknown }) => unknown === 10);
  await until(() => gpus()[1]?.model.name === 'Simulated GPU' && isKnown(), 'the pod is known');
  await cluster.create(pod('waits', { slots: 10 }));
  expect((await cluster.eventsOf('waits', 'FailedScheduling'))[0]).toContain(
    'because 10 slots are held by pods that another scheduler placed',
  );
  const [free] = await bind(await cluster.get('foreign'), 10);
  expect(assigned(await cluster.bound('waits'))).toEqual({ main: `10 of ${free}` });
  expect(gpus().map(({ unknown }) => unknown)).toEqual([0, 0]);
});
