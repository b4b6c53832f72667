import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { ControlPlane } from '../control-plane.js';
import { BindingScene, eventually } from './scene.js';

const MiB = 2 ** 20;
const HOLDING = 'start(); say("got", alloc(100 * MiB), memory()[1] // MiB); sys.stdin.readline(); say("then", alloc(MiB))';
const ASKING = 'say("init", result("cuInit", 0))';
const SLOT = Math.floor((8192 * MiB) / 10);

let plane: ControlPlane;
let scene: BindingScene;

beforeAll(async () => {
  plane = await ControlPlane.start();
});
afterAll(() => plane?.stop());

beforeEach(async () => {
  scene = new BindingScene('binding', plane);
  await scene.kubelet.start();
});
afterEach(async () => {
  await scene.end();
  const { items } = await scene.api.listNamespacedPod({ namespace: 'default' });
  for (const { metadata } of items) await scene.deletePod(metadata?.name as string);
});

function idOf(socket: string): string {
  return path.basename(path.dirname(path.dirname(socket)));
}

async function started(name: string, slots: readonly string[], options: Parameters<BindingScene['createPod']>[1] = {}) {
  const pod = await scene.createPod(name, { slots: slots.length, ...options });
  scene.kubelet.give(name, 'main', slots);
  const socket = scene.allocate(slots);
  return { pod, socket, id: idOf(socket) };
}

test('18: a grant is bound to its pod when the first program connects, by its cgroup and the kubelet, without a lock', async () => {
  await scene.serve();
  const [one, two] = await Promise.all([started('one', ['a', 'b']), started('two', ['c', 'd'])]);
  await eventually(async () =>
    expect((await scene.allocations()).map(({ slots, gpuUuids }) => [slots, gpuUuids]).sort()).toEqual([
      [['a', 'b'], []],
      [['c', 'd'], []],
    ]),
  );
  // The second pod is the first to connect, and amounts say nothing.
  const second = scene.run(two.pod, two.socket, HOLDING);
  await second.printed('got 0');
  const first = scene.run(one.pod, one.socket, HOLDING);
  await first.printed('got 0');
  const owners = (await scene.allocations()).map(({ id, owner, slots, memoryBytes, sharePercent }) => [
    id,
    owner,
    slots,
    memoryBytes,
    sharePercent,
  ]);
  const owner = ({ pod }: typeof one) => ({
    ...{ namespace: 'default', pod: pod.metadata?.name, podUid: pod.metadata?.uid, container: 'main' },
  });
  const shape = [Math.floor(2 * SLOT), 20];
  expect(owners.sort()).toEqual(
    [
      [one.id, owner(one), ['a', 'b'], ...shape],
      [two.id, owner(two), ['c', 'd'], ...shape],
    ].sort(),
  );
  expect(await first.finish()).toBe(`got 0 ${Math.floor((2 * SLOT) / MiB)}\nthen 0\n`);
  await second.finish();
});

test('a pod with the socket of another is refused with a sentence', async () => {
  await scene.serve();
  const victim = await started('victim', ['a']);
  const thief = await started('thief', ['b']);
  const holding = scene.run(victim.pod, victim.socket, HOLDING);
  await holding.printed('got 0');
  const refused = scene.run(thief.pod, victim.socket, ASKING);
  expect(await refused.finish()).toBe('init 100\n');
  expect(refused.stderr).toContain(
    `allocation ${victim.id} is for container main of pod default/victim, and the process is in another pod.`,
  );
  await eventually(async () => expect(await scene.events('thief')).toEqual([['GpuAccessRefused', expect.stringContaining('was refused')]]));
  expect(await holding.finish()).toContain('then 0');
});

test('a socket that nobody has used yet is bound to no pod to which the kubelet did not give it', async () => {
  await scene.serve({}, '--kubernetes-patience', '2s');
  const victim = await started('victim', ['a']);
  const thief = await scene.createPod('thief', { slots: 1 });
  const refused = scene.run(thief, victim.socket, ASKING);
  expect(await refused.finish()).toBe('init 100\n');
  expect(refused.stderr).toContain('Pod default/thief may not use the slots a: the kubelet gave them to pod default/victim.');
  const right = scene.run(victim.pod, victim.socket, HOLDING);
  await right.printed('got 0');
  await right.finish();
});
