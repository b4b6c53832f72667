import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { V1Node, V1Pod } from '@kubernetes/client-node';
import { assignmentOf, readInventory } from '@nvidia-virtual/kube-common/assignment';
import { assignedHolding } from '@nvidia-virtual/kube-common/holding';
import {
  ANNOTATION,
  DRAINED_ANNOTATION,
  INVENTORY_ANNOTATION,
} from '@nvidia-virtual/kube-common/names';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { assigned, type ClusterUnderTest, MERGE } from './scheduler/cluster-under-test.js';
import { pod } from './scheduler/objects.js';
import { TwoGpuScene } from './scheduler/two-gpu-scene.js';

const scene = new TwoGpuScene({ args: ['--movable', 'true'] });
let cluster: ClusterUnderTest;
let uuids: readonly string[];

beforeAll(async () => {
  await scene.start();
  ({ cluster } = scene);
  uuids = await until(async () => {
    const { metadata } = await cluster.api.request<V1Node>({ path: '/api/v1/nodes/node-1' });
    const inventory = readInventory(metadata?.annotations?.[INVENTORY_ANNOTATION]);
    return inventory?.movable && inventory.gpus.map(({ uuid }) => uuid);
  }, 'the device plugin has described the GPUs');
});
afterAll(() => scene.end());
beforeEach(() => scene.startScheduling());
afterEach(async () => {
  await cluster.removePods();
  await scene.stopScheduling();
});

async function ask(name: string, moveTo: string): Promise<void> {
  await cluster.api.request({
    ...{ method: 'PATCH', path: `/api/v1/namespaces/default/pods/${name}`, contentType: MERGE },
    body: { metadata: { annotations: { [ANNOTATION.moveTo]: moveTo } } },
  });
}

/** The pod, once its move is complete. */
function moved(name: string, gpu: string): Promise<V1Pod> {
  return until(async () => {
    const now = await cluster.get(name);
    const isThere = assigned(now)['main']?.endsWith(gpu) && !assignmentOf(now)?.former;
    return isThere && now.metadata?.annotations?.[ANNOTATION.moveTo] === undefined && now;
  }, `pod ${name} is on ${gpu}`);
}

function other(gpu: string): string {
  return uuids.find((uuid) => uuid !== gpu) ?? '';
}

async function gpuOf(name: string): Promise<string> {
  return assigned(await cluster.bound(name))['main']?.split(' of ')[1] ?? '';
}

test('a pod moves, and another pod gets the slots that it leaves', async () => {
  await cluster.create(pod('moves', { slots: 7 }));
  const from = await gpuOf('moves');
  await cluster.create(pod('waits', { slots: 7, annotations: { [ANNOTATION.gpuUuid]: from } }));
  await ask('moves', other(from));
  expect(assignmentOf(await moved('moves', other(from)))).toMatchObject({ move: 1 });
  expect(await gpuOf('waits')).toBe(from);
  await ask('moves', from);
  expect(await cluster.eventsOf('moves', 'GpuNotMoved')).toEqual([
    expect.stringContaining('3 of its slots are free, and the pod has 7'),
  ]);
  expect(await gpuOf('moves')).toBe(other(from));
  await cluster.delete('waits');
  await moved('moves', from);
});

test('while a pod moves, no other pod gets the slots of either GPU', async () => {
  await cluster.create(pod('moves', { slots: 6 }));
  const from = await gpuOf('moves');
  // Without gpu-proxy, nobody says that it has arrived.
  const { metadata } = await cluster.get('moves');
  await until(() => scene.extender.cluster.pod(metadata?.uid ?? '')?.holding, 'it is known');
  process.kill(scene.proxy.pid, 'SIGSTOP');
  try {
    await ask('moves', other(from));
    await until(async () => assignmentOf(await cluster.get('moves'))?.former, 'it moves');
    await cluster.create(pod('beside', { slots: 5 }));
    await cluster.eventsOf('beside', 'FailedScheduling');
    // Another extender knows the same from the annotation alone.
    await scene.stopScheduling();
    await scene.startScheduling();
    await cluster.create(pod('later', { slots: 5 }));
    await cluster.eventsOf('later', 'FailedScheduling');
    await ask('moves', from);
    await until(async () => assignmentOf(await cluster.get('moves'))?.move === 2, 'it returns');
  } finally {
    process.kill(scene.proxy.pid, 'SIGCONT');
  }
  await moved('moves', from);
  expect(await gpuOf('beside')).toBe(other(from));
});

test('a pod that is changed all the time does not keep its former slots', async () => {
  await cluster.create(pod('restless', { slots: 4 }));
  const from = await gpuOf('restless');
  const former = async () => assignmentOf(await cluster.get('restless'))?.former;
  let isSettled = false;
  const change = async (_: unknown, writer: number): Promise<void> => {
    for (let count = 0; !isSettled; count++) {
      const body = { metadata: { labels: { [`writer-${writer}`]: `${count}` } } };
      const path = '/api/v1/namespaces/default/pods/restless';
      await cluster.api.request({ method: 'PATCH', path, contentType: MERGE, body });
    }
  };
  // Without gpu-proxy, nobody says that it has arrived.
  process.kill(scene.proxy.pid, 'SIGSTOP');
  let changes: Promise<unknown> | undefined;
  try {
    await ask('restless', other(from));
    await until(former, 'it moves');
    changes = Promise.all(Array.from({ length: 8 }, change));
    process.kill(scene.proxy.pid, 'SIGCONT');
    await until(async () => (await former()) === undefined, 'it has arrived');
  } finally {
    process.kill(scene.proxy.pid, 'SIGCONT');
    isSettled = true;
    await changes;
  }
  await moved('restless', other(from));
});

test('pods leave a drained GPU, and it gets no others', async () => {
  await cluster.create(pod('leaves', { slots: 4 }));
  const from = await gpuOf('leaves');
  await cluster.annotateNode('node-1', { [DRAINED_ANNOTATION]: from });
  try {
    await moved('leaves', other(from));
    await cluster.create(pod('kept-out', { slots: 7 }));
    const events = await cluster.eventsOf('kept-out', 'FailedScheduling');
    expect(events[0]).toContain('Nodes without 7 free slots');
  } finally {
    await cluster.annotateNode('node-1', { [DRAINED_ANNOTATION]: null });
  }
  expect(await gpuOf('kept-out')).toBe(from);
});

/** Slots of each GPU that pods hold at this moment, those of both GPUs of a pod that moves. */
async function slotsHeld(): Promise<Map<string, number>> {
  const held = new Map<string, number>();
  for (const one of await cluster.pods())
    for (const [uuid, slots] of assignedHolding(one) ?? [])
      held.set(uuid, (held.get(uuid) ?? 0) + slots);
  return held;
}

const ROUNDS = 40;

test('no slot is held twice while pods move, come and go at the same time', async () => {
  const movers = ['m0', 'm1', 'm2'];
  for (const name of movers) await cluster.create(pod(name, { slots: 3 }));
  for (const name of movers) await cluster.bound(name);
  let [most, moves] = [0, 0];
  for (let round = 0; round < ROUNDS; round++) {
    const name = movers[round % movers.length] as string;
    const now = await cluster.get(name);
    if (!assignmentOf(now)?.former) await ask(name, other(await gpuOf(name)));
    await cluster.create(pod(`p${round}`, { slots: 1 + (round % 4) }));
    if (round >= 5) await cluster.delete(`p${round - 5}`);
    most = Math.max(most, ...(await slotsHeld()).values());
  }
  for (let left = ROUNDS - 5; left < ROUNDS; left++) await cluster.delete(`p${left}`);
  await until(async () => {
    most = Math.max(most, ...(await slotsHeld()).values());
    const pods = await Promise.all(movers.map((name) => cluster.get(name)));
    moves = pods.reduce((sum, one) => sum + (assignmentOf(one)?.move ?? 0), 0);
    return moves >= movers.length;
  }, 'each pod has moved');
  expect(most).toBeLessThanOrEqual(10);
  expect(most).toBeGreaterThan(6);
});
