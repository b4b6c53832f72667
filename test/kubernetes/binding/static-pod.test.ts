import { beforeEach, expect, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { ASKING, type BindingScene, bindingSuite, HOLDING } from './scene.js';

/** The UID that the kubelet derives from the file of the pod. */
const UID = '5f7b1c2d3e4f5a6b7c8d9e0f1a2b3c4d';
const NAME = 'static-node-1';
/** The identity of its programs: the kubelet's UID is in their cgroups. */
const POD: V1Pod = { metadata: { uid: UID } };

let scene: BindingScene;

bindingSuite('static', (made) => {
  scene = made;
});

beforeEach(() => scene.serve());

test("a static pod has its GPU by the kubelet's UID, whatever its mirror pod", async () => {
  const shown = await scene.createPod(NAME, { shows: UID });
  scene.kubelet.give(NAME, 'main', ['a']);
  const socket = scene.allocate(['a']);
  const program = scene.run(POD, socket, HOLDING);
  await program.printed('got 0');
  const [bound] = await scene.allocations();
  expect(bound?.owner).toMatchObject({ pod: NAME, podUid: UID });
  const gpus = [{ gpu: bound?.gpuUuids[0], slots: 1 }];
  expect(await scene.placed()).toEqual([{ pod: shown.metadata?.uid, gpus }]);

  await scene.deletePod(NAME);
  await scene.lookedAgain();
  expect(await scene.allocations()).toMatchObject([
    { id: bound?.id, draining: false, sessions: [{}] },
  ]);
  expect((await scene.createPod(NAME, { shows: UID })).metadata?.uid).not.toBe(shown.metadata?.uid);
  expect(await scene.run(POD, socket, ASKING).finish()).toBe('init 0\n');
  expect(await program.finish()).toMatch(/^got 0 \d+\nthen 0\n$/);

  await scene.deletePod(NAME);
  await scene.lookedAgain();
  expect(await scene.allocations()).toMatchObject([{ id: bound?.id, draining: false }]);
  scene.kubelet.take(NAME, 'main');
  await eventually(() => expect(scene.directories()).toEqual([]));
});
