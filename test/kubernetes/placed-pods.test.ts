import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import { askNode } from '@nvidia-virtual/gpu-proxy/testing/ask-node';
import { SPECIFICATION } from '@nvidia-virtual/node-state/paths';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { assigned } from './scheduler/cluster-under-test.js';
import { pod } from './scheduler/objects.js';
import { TwoGpuScene } from './scheduler/two-gpu-scene.js';

const scene = new TwoGpuScene();

beforeAll(async () => {
  await scene.start();
  await scene.startScheduling();
});
afterAll(async () => {
  await scene.stopScheduling();
  await scene.end();
});

/** Makes an allocation on the second GPU, as if the first program of the pod had connected. */
async function bind({ metadata = {} }: V1Pod, slots: number): Promise<readonly string[]> {
  const { gpus } = await askNode(scene.node.state, 'listGpus', {});
  const uuids = gpus.map(({ uuid }) => uuid);
  const { id } = await askNode(scene.node.state, 'createAllocation', { gpus: uuids.slice(1) });
  await scene.proxy.end();
  const file = path.join(scene.node.state, 'allocations', id, SPECIFICATION);
  const specification = JSON.parse(readFileSync(file, 'utf8')) as object;
  const { name, namespace, uid } = metadata;
  const given = {
    owner: { namespace, pod: name, podUid: uid, container: 'main' },
    slots: Array.from({ length: slots }, (_, index) => `slot-${index}`),
  };
  writeFileSync(file, JSON.stringify({ ...specification, ...given }));
  await scene.startProxy();
  return uuids;
}

test('a pod that names its node takes slots of its GPU only, once that is known', async () => {
  await scene.cluster.create(pod('foreign', { slots: 10, spec: { nodeName: 'node-1' } }));
  const gpus = () => scene.extender.cluster.node('node-1')?.gpus ?? [];
  const isKnown = () => gpus().every(({ unknown }) => unknown === 10);
  await until(() => gpus()[1]?.model.name === 'Simulated GPU' && isKnown(), 'the pod is known');
  await scene.cluster.create(pod('waits', { slots: 10 }));
  expect((await scene.cluster.eventsOf('waits', 'FailedScheduling'))[0]).toContain(
    'because 10 slots are held by pods that another scheduler placed',
  );
  const [free] = await bind(await scene.cluster.get('foreign'), 10);
  expect(assigned(await scene.cluster.bound('waits'))).toEqual({ main: `10 of ${free}` });
  expect(gpus().map(({ unknown }) => unknown)).toEqual([0, 0]);
});
