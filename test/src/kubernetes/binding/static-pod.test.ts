import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import { ControlPlane } from '../control-plane.js';
import { ASKING, BindingScene, eventually } from './scene.js';

const HOLDING = 'start(); say("got", alloc(1)); sys.stdin.readline(); say("then", alloc(1))';
/** The kubelet's, which it makes of the file. */
const UID = '5f7b1c2d3e4f5a6b7c8d9e0f1a2b3c4d';
const NAME = 'static-node-1';
/** What its programs are started as: cgroups are the kubelet's. */
const POD: V1Pod = { metadata: { uid: UID } };

let plane: ControlPlane;
let scene: BindingScene;

beforeAll(async () => {
  plane = await ControlPlane.start();
});
afterAll(() => plane?.stop());

beforeEach(async () => {
  scene = new BindingScene('static', plane);
  await scene.kubelet.start();
  await scene.serve();
});
afterEach(() => scene.end());

/** Whatever follows from what is there now was concluded. */
async function lookedAgain(): Promise<void> {
  const before = scene.kubelet.asked;
  await eventually(() => expect(scene.kubelet.asked).toBeGreaterThan(before + 1));
}

test('a static pod has its GPU by the UID that the kubelet has for it, and keeps it when what shows it is made again', async () => {
  const shown = await scene.createPod(NAME, { shows: UID });
  scene.kubelet.give(NAME, 'main', ['a']);
  const socket = scene.allocate(['a']);
  const program = scene.run(POD, socket, HOLDING);
  await program.printed('got 0');
  const [bound] = await scene.allocations();
  expect(bound?.owner).toMatchObject({ pod: NAME, podUid: UID });

  await scene.deletePod(NAME);
  await lookedAgain();
  expect(await scene.allocations()).toMatchObject([{ id: bound?.id, draining: false, sessions: [{}] }]);
  expect((await scene.createPod(NAME, { shows: UID })).metadata?.uid).not.toBe(shown.metadata?.uid);
  expect(await scene.run(POD, socket, ASKING).finish()).toBe('init 0\n');
  expect(await program.finish()).toBe('got 0\nthen 0\n');

  await scene.deletePod(NAME);
  await lookedAgain();
  expect(await scene.allocations()).toMatchObject([{ id: bound?.id, draining: false }]);
  scene.kubelet.take(NAME, 'main');
  await eventually(() => expect(scene.directories()).toEqual([]));
});

test('an earlier build bound a static pod by the UID of what shows it: its programs go on getting their GPU', async () => {
  const { metadata: { uid: shown } = {} } = await scene.createPod(NAME, { shows: UID });
  scene.kubelet.give(NAME, 'main', ['a']);
  const socket = scene.allocate(['a']);
  await scene.run(POD, socket, ASKING).finish();
  const [bound] = await scene.allocations();
  await scene.kill();
  scene.rewrite(bound?.id ?? '', (specification) => ({
    ...specification,
    owner: { ...(specification['owner'] as object), podUid: shown },
  }));
  await scene.serve();
  expect(await scene.run(POD, socket, ASKING).finish()).toBe('init 0\n');
  await lookedAgain();
  expect(await scene.allocations()).toMatchObject([{ id: bound?.id, draining: false }]);
});
