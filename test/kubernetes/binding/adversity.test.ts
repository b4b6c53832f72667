import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import { readIfThere } from '@nvidia-virtual/service/files';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { Forwarder } from './forwarder.js';
import { ASKING, type BindingScene, bindingSuite, HOLDING } from './scene.js';

const PTRACE_SEIZE = 0x4206;

/** The UID that the kubelet derives from the file of the pod. */
const STATIC_UID = '5f7b1c2d3e4f5a6b7c8d9e0f1a2b3c4d';
const STATIC_NAME = 'static-node-1';
/** The identity of its programs: the kubelet's UID is in their cgroups. */
const STATIC_POD: V1Pod = { metadata: { uid: STATIC_UID } };

const tracers: ChildProcess[] = [];
let scene: BindingScene;

// Before the scene ends, because it waits for their workers.
afterEach(() => {
  for (const tracer of tracers.splice(0)) tracer.kill();
});

bindingSuite('adversity', (made) => {
  scene = made;
});

/** The directory of an allocation, by its socket. */
function directoryOf(socket: string): string {
  return path.dirname(path.dirname(socket));
}

function taggedUid(socket: string): string | undefined {
  const text = readIfThere(path.join(directoryOf(socket), 'pod.json'));
  return text === undefined ? undefined : JSON.parse(text).podUid;
}

/** Makes all writes in it fail, as on a full disk. */
function preventWriting(socket: string, name: string): string {
  const inTheWay = path.join(directoryOf(socket), `.new-${name}`);
  mkdirSync(inTheWay);
  return inTheWay;
}

test('a pod that took a name while the API server was down keeps its grant', async () => {
  const forwarder = await Forwarder.start(scene.plane.url);
  try {
    await scene.createPod('web-0', { slots: 1 });
    await scene.serve({
      KUBECONFIG: forwarder.writeKubeconfig(
        scene.plane.adminKubeconfig,
        path.join(scene.directory, 'kubeconfig'),
      ),
    });
    await scene.lookedAgain();
    forwarder.closed = true;
    await scene.proxy.printed('the watch of /api/v1/pods failed');
    await scene.deletePod('web-0');
    const { pod, socket } = await scene.started('web-0', ['a']);
    await scene.lookedAgain();
    expect(taggedUid(socket)).toBeUndefined();
    forwarder.closed = false;
    await eventually(() => expect(taggedUid(socket)).toBe(pod.metadata?.uid));
    const program = scene.run(pod, socket, HOLDING);
    await program.printed('got 0');
    await program.finish();
  } finally {
    forwarder.end();
  }
});

test('an API server that stops answering is logged and watched again', async () => {
  const forwarder = await Forwarder.start(scene.plane.url);
  const http = path.join(scene.directory, 'http.sock');
  try {
    const kubeconfig = forwarder.writeKubeconfig(
      scene.plane.adminKubeconfig,
      path.join(scene.directory, 'kubeconfig'),
    );
    await scene.serve({ KUBECONFIG: kubeconfig }, '--http', http);
    await eventually(async () =>
      expect(await scene.get(http, '/metrics')).toMatch(/^nvidia_virtual_pods_followed\{.*\} 1$/m),
    );
    forwarder.silent = true;
    await eventually(async () =>
      expect(await scene.get(http, '/readyz')).toContain('no answer came within 10 s'),
    );
    expect(await scene.get(http, '/metrics')).toMatch(/^nvidia_virtual_pods_followed\{.*\} 0$/m);
    const { pod, socket } = await scene.started('heard-of-later', ['a']);
    const program = scene.run(pod, socket, HOLDING);
    forwarder.silent = false;
    await program.printed('got 0');
    await program.finish();
    await eventually(async () => expect(await scene.get(http, '/readyz')).toBe('{"ready":true}\n'));
  } finally {
    forwarder.end();
  }
});

test('a grant of the former pod of a name belongs to its successor', async () => {
  const { pod, socket } = await scene.started('web-1', ['a']);
  writeFileSync(
    path.join(directoryOf(socket), 'pod.json'),
    JSON.stringify({ namespace: 'default', pod: 'web-1', podUid: 'former' }),
  );
  await scene.serve();
  await eventually(() => expect(taggedUid(socket)).toBe(pod.metadata?.uid));
  await scene.deletePod('web-1');
  scene.kubelet.take('web-1', 'main');
  await eventually(() => expect(scene.directories()).toEqual([]));
});

test('a grant is kept if the kubelet knows its pod but the list does not yet', async () => {
  scene.kubelet.give('web-2', 'main', ['a']);
  const socket = scene.allocate(['a']);
  writeFileSync(
    path.join(directoryOf(socket), 'pod.json'),
    JSON.stringify({ namespace: 'default', pod: 'web-2', podUid: 'former' }),
  );
  await scene.serve();
  await scene.lookedAgain();
  expect(scene.directories()).toHaveLength(1);
  scene.kubelet.take('web-2', 'main');
  await eventually(() => expect(scene.directories()).toEqual([]));
});

test('if the pod of a grant cannot be recorded, the program gets its GPU', async () => {
  await scene.serve();
  const { pod, socket } = await scene.started('full', ['a']);
  preventWriting(socket, 'pod.json');
  const program = scene.run(pod, socket, HOLDING);
  await program.printed('got 0');
  await scene.proxy.printed('The pod of the grant could not be saved');
  await program.finish();
  scene.kubelet.take('full', 'main');
  await scene.deletePod('full');
  await eventually(() => expect(scene.directories()).toEqual([]));
  expect(await scene.allocations()).toEqual([]);
});

test('errors on the node are reported to the program and to its pod', async () => {
  await scene.serve();
  const { pod, socket } = await scene.started('unlucky', ['a']);
  const inTheWay = preventWriting(socket, 'allocation.json');
  const [said, why] = await scene.ask(pod, socket);
  expect([said, why]).toEqual([
    'init 100\n',
    expect.stringContaining('could not be prepared: illegal operation on a directory.'),
  ]);
  await eventually(async () =>
    expect(await scene.events('unlucky')).toEqual([
      ['GpuNotAvailable', expect.stringContaining('could not be prepared')],
    ]),
  );
  rmSync(inTheWay, { recursive: true });
  expect(await scene.ask(pod, socket)).toEqual(['init 0\n', '']);
});

/**
 * Its parent is not notified of its exit before this process ends: to it the worker is unkillable.
 */
async function withhold(pid: number): Promise<() => void> {
  const seize =
    `import ctypes, sys; ` +
    `print(ctypes.CDLL(None).ptrace(${PTRACE_SEIZE}, ${pid}, None, None), flush=True); ` +
    `sys.stdin.read()`;
  const tracer = spawn('python3', ['-c', seize], { stdio: ['pipe', 'pipe', 'inherit'] });
  tracers.push(tracer);
  const [answer] = await once(tracer.stdout, 'data');
  expect(String(answer).trim()).toBe('0');
  return () => tracer.stdin.end();
}

test('an unkillable worker of a predecessor is waited for until the timeout only', async () => {
  await scene.serve({}, '--kubernetes-patience', '5s');
  const before = await scene.started('before', ['a']);
  const old = scene.run(before.pod, before.socket, HOLDING);
  await old.printed('got 0');
  const worker = (await scene.allocations())[0]?.sessions[0]?.workerPid as number;
  const letGo = await withhold(worker);
  scene.kubelet.take('before', 'main');
  const after = await scene.started('after', ['a']);
  const refused = scene.run(after.pod, after.socket, ASKING);
  expect(await refused.finish()).toBe('init 100\n');
  const sentence = `they belonged to pod default/before, whose worker ${worker} does not exit`;
  expect(refused.stderr).toContain(sentence);
  await eventually(async () =>
    expect(await scene.events('after')).toEqual([
      ['GpuNotAvailable', expect.stringContaining(sentence)],
    ]),
  );
  letGo();
  await eventually(async () =>
    expect(await scene.ask(after.pod, after.socket)).toEqual(['init 0\n', '']),
  );
});

test("a static pod has its GPU by the kubelet's UID, whatever its mirror pod", async () => {
  await scene.serve();
  const shown = await scene.createPod(STATIC_NAME, { shows: STATIC_UID });
  scene.kubelet.give(STATIC_NAME, 'main', ['a']);
  const socket = scene.allocate(['a']);
  const program = scene.run(STATIC_POD, socket, HOLDING);
  await program.printed('got 0');
  const [bound] = await scene.allocations();
  expect(bound?.owner).toMatchObject({ pod: STATIC_NAME, podUid: STATIC_UID });
  const gpus = [{ gpu: bound?.gpuUuids[0], slots: 1 }];
  expect(await scene.placed()).toEqual([{ pod: shown.metadata?.uid, gpus }]);

  await scene.deletePod(STATIC_NAME);
  await scene.lookedAgain();
  expect(await scene.allocations()).toMatchObject([
    { id: bound?.id, draining: false, sessions: [{}] },
  ]);
  expect((await scene.createPod(STATIC_NAME, { shows: STATIC_UID })).metadata?.uid).not.toBe(
    shown.metadata?.uid,
  );
  expect(await scene.run(STATIC_POD, socket, ASKING).finish()).toBe('init 0\n');
  expect(await program.finish()).toMatch(/^got 0 \d+\nthen 0\n$/);

  await scene.deletePod(STATIC_NAME);
  await scene.lookedAgain();
  expect(await scene.allocations()).toMatchObject([{ id: bound?.id, draining: false }]);
  scene.kubelet.take(STATIC_NAME, 'main');
  await eventually(() => expect(scene.directories()).toEqual([]));
});
