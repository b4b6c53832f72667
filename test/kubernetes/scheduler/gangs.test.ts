import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import type { ExtenderService } from '@nvidia-virtual/scheduler-ext/extender/extender-service';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { runCommand } from '@nvidia-virtual/toolchain/command';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';
import { ControlPlane } from '../control-plane.js';
import { assigned, ClusterUnderTest } from './cluster-under-test.js';
import { gpu, pod } from './objects.js';
import { startExtender, startScheduler } from './scheduling.js';

/**
 * Gangs of kube-scheduler itself, an alpha feature of Kubernetes 1.36, with the extender. Only the
 * nodes are fake.
 */
const GROUPS = '/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups';

let plane: ControlPlane;
let cluster: ClusterUnderTest;
let extender: ExtenderService;

beforeAll(async () => {
  plane = await ControlPlane.start({
    featureGates: 'GenericWorkload=true,GangScheduling=true',
    runtimeConfig: 'scheduling.k8s.io/v1alpha2=true',
  });
  cluster = new ClusterUnderTest(plane.adminKubeconfig);
  extender = await startExtender({ kubeconfig: plane.adminKubeconfig });
  await startScheduler(plane, extender);
});
afterAll(async () => {
  await plane?.daemon('kube-scheduler').stop();
  await extender?.end();
  cluster?.api.close();
  await plane?.stop();
});
beforeEach(() => cluster.addNode('one', [gpu('GPU-a'), gpu('GPU-b')]));
afterEach(async () => {
  await cluster.removePods();
  await cluster.api.request({ method: 'DELETE', path: GROUPS });
  await cluster.removeNode('one');
});

async function createGang(name: string, members: number, slots: number): Promise<string[]> {
  const body = {
    apiVersion: 'scheduling.k8s.io/v1alpha2',
    kind: 'PodGroup',
    metadata: { name },
    spec: { schedulingPolicy: { gang: { minCount: members } } },
  };
  await cluster.api.request({ method: 'POST', path: GROUPS, body });
  const names = Array.from({ length: members }, (_, index) => `${name}-${index}`);
  for (const member of names) await cluster.create(memberOf(name, member, slots));
  return names;
}

/** The client does not know the field yet. */
function memberOf(group: string, name: string, slots: number): V1Pod {
  const spec = { schedulingGroup: { podGroupName: group } };
  return pod(name, { slots, spec: spec as Partial<NonNullable<V1Pod['spec']>> });
}

const boundPods = async () => (await cluster.pods()).filter(({ spec }) => spec?.nodeName);

test('a gang that fits is bound as a whole, each member with slots of its own', async () => {
  const names = await createGang('fits', 2, 6);
  const bound = await Promise.all(names.map((name) => cluster.bound(name)));
  expect(bound.map((one) => assigned(one)['main']).sort()).toEqual(['6 of GPU-a', '6 of GPU-b']);
});

test('a gang that fits the count of slots, but not the GPUs, is not bound in part', async () => {
  // 18 of 20 slots are asked for, but only one pod of 6 slots fits each of the two GPUs.
  const names = await createGang('too-large', 3, 6);
  for (const name of names) await cluster.eventsOf(name, 'FailedScheduling');
  expect(await boundPods()).toEqual([]);
  // Its claims end, so that others get the slots.
  await cluster.create(pod('whole', { slots: 10 }));
  expect(assigned(await cluster.bound('whole'))['main']).toMatch(/^10 of GPU-[ab]$/);
  expect((await boundPods()).map(({ metadata }) => metadata?.name)).toEqual(['whole']);
});

test('the API server accepts the example', async () => {
  const file = path.join(REPOSITORY, 'examples', 'gang.yaml');
  const template =
    '{.kind} {.spec.schedulingPolicy.gang.minCount}' +
    '{.spec.template.spec.schedulingGroup.podGroupName}{"\\n"}';
  const { output } = await runCommand(kubernetesTool('kubectl'), [
    ...['--kubeconfig', plane.adminKubeconfig, 'create', '--dry-run=server'],
    ...['-o', `jsonpath=${template}`, '-f', file],
  ]);
  expect(output).toBe('PodGroup 2\nJob training\n');
});

test('a waiting gang is bound as a whole once there is room', async () => {
  await cluster.create(pod('blocks', { slots: 6 }));
  await cluster.bound('blocks');
  const names = await createGang('waits', 2, 6);
  for (const name of names) await cluster.eventsOf(name, 'FailedScheduling');
  expect((await boundPods()).map(({ metadata }) => metadata?.name)).toEqual(['blocks']);
  await cluster.delete('blocks');
  await Promise.all(names.map((name) => cluster.bound(name)));
});

test('of two gangs of which only one fits, one is bound as a whole', async () => {
  const [one, two] = await Promise.all([createGang('first', 2, 6), createGang('second', 2, 6)]);
  const bound = await until(async () => {
    const pods = await boundPods();
    return pods.length >= 2 && pods.map(({ metadata }) => metadata?.name ?? '').sort();
  }, 'a gang is bound');
  expect([one, two]).toContainEqual(bound);
});
