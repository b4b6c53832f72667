import { appendFileSync, readlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import { makeLyingBuild } from '@nvidia-virtual/gpu-proxy/testing/lying-worker';
import { eventually, until } from '@nvidia-virtual/service/testing/eventually';
import { ASKING, type BindingScene, bindingSuite, HOLDING, idOf, NODE } from './scene.js';

const MiB = 2 ** 20;
const ASKING_FOR_MORE = 'start(); say("total", memory()[1] // MiB, "more", alloc(800 * MiB))';
const SLOT = Math.floor((8192 * MiB) / 10);

let scene: BindingScene;

bindingSuite('binding', (made) => {
  scene = made;
});

test('number 18: the first program binds a grant, by cgroup and kubelet', async () => {
  await scene.serve();
  const [one, two] = await Promise.all([
    scene.started('one', ['a', 'b']),
    scene.started('two', ['c', 'd']),
  ]);
  await eventually(async () =>
    expect(
      (await scene.allocations()).map(({ slots, gpuUuids }) => [slots, gpuUuids]).sort(),
    ).toEqual([
      [['a', 'b'], []],
      [['c', 'd'], []],
    ]),
  );
  // The second pod connects first, and both request the same amount.
  const second = scene.run(two.pod, two.socket, HOLDING);
  await second.printed('got 0');
  const first = scene.run(one.pod, one.socket, HOLDING);
  await first.printed('got 0');
  const owners = (await scene.allocations()).map(
    ({ id, owner, slots, memoryBytes, sharePercent }) => [
      id,
      owner,
      slots,
      memoryBytes,
      sharePercent,
    ],
  );
  const owner = ({ pod }: typeof one) => ({
    namespace: 'default',
    pod: pod.metadata?.name,
    podUid: pod.metadata?.uid,
    container: 'main',
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

test('a pod with the socket of another is refused with a message', async () => {
  await scene.serve();
  const victim = await scene.started('victim', ['a']);
  const thief = await scene.started('thief', ['b']);
  const holding = scene.run(victim.pod, victim.socket, HOLDING);
  await holding.printed('got 0');
  const refused = scene.run(thief.pod, victim.socket, ASKING);
  expect(await refused.finish()).toBe('init 100\n');
  expect(refused.stderr).toContain(
    `allocation ${victim.id} is for container main of pod default/victim, but the process is ` +
      `in another pod.`,
  );
  await eventually(async () =>
    expect(await scene.events('thief')).toEqual([
      ['GpuAccessRefused', expect.stringContaining('was refused')],
    ]),
  );
  expect(await holding.finish()).toContain('then 0');
});

test('an unused socket is not bound to a pod to which the kubelet did not give it', async () => {
  await scene.serve({}, '--kubernetes-patience', '5s');
  const victim = await scene.started('victim', ['a']);
  const thief = await scene.createPod('thief', { slots: 1 });
  const refused = scene.run(thief, victim.socket, ASKING);
  expect(await refused.finish()).toBe('init 100\n');
  expect(refused.stderr).toContain(
    'Pod default/thief may not use the slots a: the kubelet assigned them to pod default/victim.',
  );
  const right = scene.run(victim.pod, victim.socket, HOLDING);
  await right.printed('got 0');
  await right.finish();
});

test('a pod with the UID of another in its annotations is not mistaken for it', async () => {
  await scene.serve({}, '--kubernetes-patience', '30s');
  const thief = await scene.createPod('thief', {
    slots: 1,
    annotations: { 'nvidia-virtual/memory': '100Mi' },
  });
  const victim = await scene.started('victim', ['a']);
  const annotations = {
    ...thief.metadata?.annotations,
    'kubernetes.io/config.hash': victim.pod.metadata?.uid as string,
  };
  const body = { ...thief, metadata: { ...thief.metadata, annotations } };
  await scene.api.replaceNamespacedPod({ name: 'thief', namespace: 'default', body });
  const program = scene.run(victim.pod, victim.socket, HOLDING);
  await program.printed(`got 0 ${Math.floor(SLOT / MiB)}`);
  expect((await scene.allocations()).map(({ owner }) => owner?.pod)).toEqual(['victim']);
  await program.finish();
});

test('a grant that cannot be read is logged once, and kept', async () => {
  const id = idOf(scene.allocate(['a']));
  writeFileSync(path.join(scene.state, 'allocations', id, 'grant.json'), '');
  await scene.serve();
  await scene.proxy.printed(
    'grant.json is not a valid grant of version 1. Its container gets no GPU',
  );
  // A new grant causes another scan.
  const other = idOf(scene.allocate(['b']));
  await eventually(async () =>
    expect((await scene.allocations()).map(({ slots }) => slots)).toEqual([['b']]),
  );
  expect(scene.proxy.stdout.split('is not a valid grant')).toHaveLength(2);
  expect(scene.directories().sort()).toEqual([id, other].sort());
});

test('an unused grant is removed, unless a live pod may still run with it', async () => {
  const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
  // One grant per pod size: the first pod was initialized before the grant was created, the third
  // was admitted long after.
  const grants = [['a'], ['b', 'c'], ['d', 'e', 'f']].map((slots) => idOf(scene.allocate(slots)));
  for (const id of grants) scene.changeGrant(id, { createdAt: ago(60) });
  for (const [slots, started, initialized] of [
    [1, 90, 80],
    [2, 60, 50],
    [3, 30, 20],
  ] as const) {
    const pod = await scene.createPod(`pod-${slots}`, { slots, initSlots: slots });
    const conditions = [
      { type: 'Initialized', status: 'True', lastTransitionTime: ago(initialized) },
    ];
    await scene.patchStatus(pod, { startTime: ago(started), conditions });
  }
  await scene.serve();
  await eventually(() => expect(scene.directories()).toEqual([grants[1]]));
  await scene.deletePod('pod-2');
  await eventually(() => expect(scene.directories()).toEqual([]));
});

test('number 22: init and app container on the same slots have own accounts', async () => {
  await scene.serve();
  const pod = await scene.createPod('both', {
    slots: 2,
    initSlots: 2,
    annotations: { 'nvidia-virtual/memory': 'prepare=300Mi' },
  });
  // The kubelet lists only the app container, and repeats its answer for each.
  scene.kubelet.give('both', 'main', ['a', 'b']);
  const [initSocket, mainSocket] = [scene.allocate(['a', 'b']), scene.allocate(['a', 'b'])];
  const init = scene.run(pod, initSocket, HOLDING);
  await scene.tellStarted(pod, 'prepare', init.containerId, true);
  await init.printed('got 0 300');
  expect(await init.finish()).toContain('then 0');
  await scene.patchStatus(pod, { conditions: [{ type: 'Initialized', status: 'True' }] });
  const main = scene.run(pod, mainSocket, HOLDING);
  await scene.tellStarted(pod, 'main', main.containerId);
  await main.printed(`got 0 ${Math.floor((2 * SLOT) / MiB)}`);
  const taken = (await scene.allocations()).filter(({ gpuUuids }) => gpuUuids.length > 0);
  expect(taken.map(({ id, owner }) => [id, owner?.container])).toEqual([
    [idOf(mainSocket), 'main'],
  ]);
  await main.finish();
  // The sandbox was lost: everything starts again, with the same mounts. The API server still calls
  // the pod initialized.
  const again = scene.run(pod, initSocket, HOLDING);
  await scene.proxy.printed(`has the id ${again.containerId}`);
  await scene.tellStarted(pod, 'prepare', again.containerId, true);
  await again.printed('got 0 300');
  await again.finish();
});

test('a container that restarts in its pod keeps its allocation', async () => {
  await scene.serve();
  const { pod, socket, id } = await scene.started('again', ['a']);
  const first = scene.run(pod, socket, HOLDING);
  await scene.tellStarted(pod, 'main', first.containerId);
  await first.printed('got 0');
  first.process.kill('SIGKILL');
  const second = scene.run(pod, socket, HOLDING);
  await second.printed('got 0');
  expect((await scene.allocations()).map((one) => one.id)).toEqual([id]);
  expect(await second.finish()).toContain('then 0');
});

test('number 22: a process of another container of the pod is refused', async () => {
  await scene.serve();
  const { pod, socket } = await scene.started('pair', ['a']);
  const main = scene.run(pod, socket, HOLDING);
  await main.printed('got 0');
  const other = scene.cgroups.container(pod.metadata?.uid as string);
  await scene.tellStarted(pod, 'sidecar', other.id);
  await eventually(async () => {
    const refused = scene.runIn(other.processFiles, socket, ASKING);
    expect(await refused.finish()).toBe('init 100\n');
    expect(refused.stderr).toContain(
      'The GPU of pod default/pair is for container main, but a process of container sidecar ' +
        'tried to use it.',
    );
  });
  await main.finish();
});

test('slots of a deleted pod serve the next one when their memory is free', async () => {
  await scene.serve();
  const before = await scene.started('before', ['a']);
  const old = scene.run(before.pod, before.socket, HOLDING);
  await old.printed('got 0');
  // The kubelet reassigns the slots while a program of the old pod still runs and holds memory.
  scene.kubelet.take('before', 'main');
  const after = await scene.started('after', ['a']);
  const program = scene.run(after.pod, after.socket, HOLDING);
  await program.printed('got 0');
  expect(
    (await scene.allocations()).map(({ id, memoryUsedBytes }) => [id, memoryUsedBytes]),
  ).toEqual([[after.id, 100 * MiB]]);
  expect(await old.finish()).toContain('then 46');
  await eventually(async () =>
    expect(await scene.events('before')).toEqual([
      [
        'GpuNotAvailable',
        expect.stringMatching(
          /^The kubelet assigned the slots a of this pod to pod default\/after/,
        ),
      ],
    ]),
  );
  await program.finish();
  scene.kubelet.take('after', 'main');
  await scene.deletePod('after');
  await eventually(() => expect(scene.directories()).toEqual([]));
});

test('two pods with the same slots both get a GPU, and nothing is left', async () => {
  await scene.serve();
  const slots = Array.from({ length: 9 }, (_, index) => `other-${index}`);
  const others = await Promise.all(slots.map((slot) => scene.started(slot, [slot])));
  const programs = others.map(({ pod, socket }) => scene.run(pod, socket, HOLDING));
  await Promise.all(programs.map((program) => program.printed('got 0')));
  const [first, second] = [
    await scene.started('first', ['a']),
    await scene.started('second', ['a']),
  ];
  await scene.lookedAgain();
  const one = scene.run(first.pod, first.socket, HOLDING);
  await one.printed('got 0');
  // The remaining slot of the kubelet belongs to a pod that has ended, which gpu-proxy does not
  // know yet.
  const two = scene.run(second.pod, second.socket, HOLDING);
  await scene.proxy.printed('no single GPU of the node has room');
  await programs[0]?.finish();
  await scene.patchStatus(others[0]?.pod as V1Pod, { phase: 'Succeeded' });
  await two.printed('got 0');
  expect([await one.finish(), await two.finish()]).toEqual([
    expect.stringContaining('then 0'),
    expect.stringContaining('then 0'),
  ]);
  expect(await scene.events('first')).toEqual([]);
  for (const name of ['first', 'second']) {
    scene.kubelet.take(name, 'main');
    await scene.deletePod(name);
    const left = name === 'first' ? [second.id] : [];
    await eventually(() =>
      expect(scene.directories().filter((id) => [first.id, second.id].includes(id))).toEqual(left),
    );
  }
});

test('a grant goes with its pod, used or not, deleted or completed', async () => {
  await scene.serve();
  const unused = await scene.started('unused', ['a']);
  const done = await scene.started('done', ['b']);
  const program = scene.run(done.pod, done.socket, HOLDING);
  await program.printed('got 0');
  await program.finish();
  await scene.patchStatus(done.pod, { phase: 'Succeeded' });
  await eventually(() => expect(scene.directories()).toEqual([unused.id]));
  await scene.deletePod('unused');
  scene.kubelet.take('unused', 'main');
  await eventually(() => expect(scene.directories()).toEqual([]));
});

test.each(['SIGKILL', 'SIGTERM'] as const)(
  'number 4: %s of the proxy: programs continue, grants are found again',
  async (signal) => {
    await scene.serve();
    const used = await scene.started('used', ['a']);
    const gone = await scene.started('gone', ['b']);
    const fresh = await scene.started('fresh', ['c']);
    const program = scene.run(used.pod, used.socket, HOLDING);
    const lost = scene.run(gone.pod, gone.socket, HOLDING);
    await Promise.all([program.printed('got 0'), lost.printed('got 0')]);
    scene.proxy.process.kill(signal);
    await scene.proxy.end();
    lost.process.kill('SIGKILL');
    await scene.deletePod('gone');
    await scene.serve();
    await eventually(() => expect(scene.directories().sort()).toEqual([used.id, fresh.id].sort()));
    const next = scene.run(fresh.pod, fresh.socket, HOLDING);
    const more = scene.run(used.pod, used.socket, ASKING);
    await next.printed('got 0');
    expect([await program.finish(), await more.finish()]).toEqual([
      expect.stringContaining('then 0'),
      'init 0\n',
    ]);
    await next.finish();
  },
);

test('number 4: after a reboot pods keep their grants, and no session is left', async () => {
  await scene.serve();
  const { pod, socket, id } = await scene.started('reboot', ['a']);
  const program = scene.run(pod, socket, HOLDING);
  await program.printed('got 0');
  await scene.kill();
  program.process.kill('SIGKILL');
  await program.finish();
  scene.pretendReboot();
  await scene.serve();
  expect(
    (await scene.allocations()).map((one) => [one.id, one.sessions, one.memoryUsedBytes]),
  ).toEqual([[id, [], 0]]);
  const again = scene.run(pod, socket, HOLDING);
  await again.printed('got 0');
  await again.finish();
});

test('without an API server the first program waits, and the log says why', async () => {
  const { pod, socket } = await scene.started('patient', ['a']);
  await scene.plane.daemon('kube-apiserver').kill();
  // A busy machine takes long to start an API server.
  await scene.serve({}, '--kubernetes-patience', '110s');
  const program = scene.run(pod, socket, HOLDING);
  await scene.proxy.printed('a program waits for its GPU: The pod');
  await scene.proxy.printed('the watch of /api/v1/pods failed');
  scene.plane.daemon('kube-apiserver').start();
  await scene.plane.ready();
  await program.printed('got 0');
  expect(await program.finish()).toContain('then 0');
});

test('annotations shape what slots give; a PriorityClass gives no priority', async () => {
  await scene.serve();
  const annotations = {
    'nvidia-virtual/memory': '512Mi',
    'nvidia-virtual/cores': '7',
    'nvidia-virtual/policy': 'fixed',
    'nvidia-virtual/priority': '-7',
  };
  const low = await scene.started('low', ['a', 'b'], { annotations });
  const high = await scene.started('high', ['c'], {
    priorityClassName: 'system-node-critical',
    annotations: { 'nvidia-virtual/memory': '100Gi', 'nvidia-virtual/cores': '99' },
  });
  for (const { pod, socket } of [low, high]) {
    expect(await scene.ask(pod, socket)).toEqual(['init 0\n', '']);
  }
  expect([scene.specification(low.id), scene.specification(high.id)]).toEqual([
    expect.objectContaining({
      ...{ memory: 512 * MiB, share: 7, policy: 'fixed', priority: -7 },
      slots: ['a', 'b'],
    }),
    expect.objectContaining({ memory: SLOT, share: 10, policy: 'burst', priority: 0 }),
  ]);
});

test('invalid requests of a pod are reported to its program and in its events', async () => {
  await scene.serve({}, '--kubernetes-patience', '10s');
  const { pod, socket } = await scene.started('wrong', ['a'], {
    annotations: { 'nvidia-virtual/memory': 'much' },
  });
  const program = scene.run(pod, socket, ASKING);
  expect(await program.finish()).toBe('init 100\n');
  expect(program.stderr).toContain('nvidia-virtual/memory is "much"');
  await eventually(async () =>
    expect(await scene.events('wrong')).toEqual([
      [
        'GpuRequestWrong',
        expect.stringContaining('The GPU request of pod default/wrong is invalid'),
      ],
    ]),
  );
});

test('without room on a GPU: CUDA_ERROR_NO_DEVICE, and an event with the reason', async () => {
  await scene.serve({ NVIDIA_VIRTUAL_SIMULATED_GPUS: '2' });
  const slots = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, index) => `${prefix}${index}`);
  for (const [name, count] of [
    ['first', 7],
    ['second', 7],
  ] as const) {
    const { pod, socket } = await scene.started(name, slots(name, count));
    expect(await scene.ask(pod, socket)).toEqual(['init 0\n', '']);
  }
  const large = await scene.started('large', slots('large', 6));
  const program = scene.run(large.pod, large.socket, ASKING);
  expect(await program.finish()).toBe('init 100\n');
  expect(program.stderr).toContain(
    'Container main has 6 slots, but no single GPU of the node has room for them: GPU 0',
  );
  await eventually(async () =>
    expect(await scene.events('large')).toEqual([
      ['GpuNotAvailable', expect.stringContaining('has 3 of its 10 slots free')],
    ]),
  );
  const spread = await scene.started('spread', slots('spread', 6), {
    annotations: { 'nvidia-virtual/gpus': '2' },
  });
  expect(await scene.ask(spread.pod, spread.socket)).toEqual(['init 0\n', '']);
  expect(scene.specification(spread.id)).toMatchObject({
    gpus: [expect.any(String), expect.any(String)],
    share: 30,
    memory: 3 * SLOT,
  });
});

test('the GPU is the one that our scheduler assigned', async () => {
  await scene.serve({ NVIDIA_VIRTUAL_SIMULATED_GPUS: '3' });
  const uuid = 'GPU-73696d75-6c61-4064-a970-750000000002';
  const assigned = JSON.stringify({ version: 1, containers: { main: [{ gpu: uuid, slots: 1 }] } });
  const { pod, socket, id } = await scene.started('assigned', ['a'], {
    annotations: { 'nvidia-virtual/assigned': assigned },
  });
  expect(await scene.ask(pod, socket)).toEqual(['init 0\n', '']);
  expect(scene.specification(id)).toMatchObject({ gpus: [uuid] });
});

test('a pod in a user namespace (hostUsers: false) gets its GPU', async () => {
  await scene.serve();
  const { pod, socket } = await scene.started('mapped', ['a']);
  const program = scene.run(pod, socket, HOLDING, ['unshare', '--user', '--map-root-user']);
  await program.printed('got 0');
  expect(await program.finish()).toContain('then 0');
});

test('a sandbox and a process outside of all pods are refused with a message', async () => {
  await scene.serve({}, '--kubernetes-patience', '1s');
  const { pod, socket } = await scene.started('sandboxed', ['a']);
  const sandboxed = scene.run(pod, socket, ASKING, scene.sandboxProgram('runsc'));
  expect(await sandboxed.finish()).toBe('init 100\n');
  expect(sandboxed.stderr).toContain('(runsc) was refused: it represents a sandbox (gVisor, Kata)');
  const outside = scene.runIn([], socket, ASKING);
  expect(await outside.finish()).toBe('init 100\n');
  expect(outside.stderr).toContain('was refused: its cgroup belongs to no pod');
});

test("number 12: another user's shell has the container's part and no more", async () => {
  await scene.serve();
  const { pod, socket, id } = await scene.started('shell', ['a']);
  const main = scene.run(pod, socket, HOLDING);
  await main.printed('got 0');
  const shell = scene.run(pod, socket, ASKING_FOR_MORE, scene.loginShell(socket));
  expect(await shell.finish()).toBe(`total ${Math.floor(SLOT / MiB)} more 2\n`);
  expect((await scene.allocations()).map((one) => [one.id, one.memoryBytes])).toEqual([[id, SLOT]]);
  await main.finish();
});

test('a worker that holds more than its quota is killed, and its pod gets an event', async () => {
  const [quota, taken] = [64 * MiB, 4096 * MiB];
  const build = makeLyingBuild(path.join(scene.directory, 'build'), { quota, taken });
  await scene.serve({ NVIDIA_VIRTUAL_BUILD: build });
  const { pod, socket } = await scene.started('liar', ['a'], {
    annotations: { 'nvidia-virtual/memory': '64Mi' },
  });
  const [said] = await scene.ask(pod, socket);
  expect(said).not.toContain('init 0');
  await eventually(async () =>
    expect(await scene.events('liar')).toContainEqual([
      'GpuMemoryBeyondQuota',
      expect.stringContaining('held 4 GiB'),
    ]),
  );
});

test('number 1: programs of a container share one quota, and a neighbour has its own', async () => {
  await scene.serve();
  const [greedy, neighbour] = [
    await scene.started('greedy', ['a']),
    await scene.started('neighbour', ['b']),
  ];
  const quiet = scene.run(neighbour.pod, neighbour.socket, HOLDING);
  await quiet.printed('got 0');
  const first = scene.run(
    greedy.pod,
    greedy.socket,
    'start(); say("got", alloc(500 * MiB)); sys.stdin.readline()',
  );
  await first.printed('got 0');
  const second = scene.run(
    greedy.pod,
    greedy.socket,
    'start(); say("more", alloc(500 * MiB), alloc(200 * MiB))',
  );
  expect(await second.finish()).toBe('more 2 0\n');
  expect(second.stderr).toMatch(
    /\] 500 MiB of GPU memory were asked for where 5\S+ MiB of the quota of \S+ MiB were in use/,
  );
  expect(await quiet.finish()).toContain('then 0');
  await first.finish();
  await eventually(async () =>
    expect(await scene.events('greedy')).toEqual([
      [
        'GpuMemoryQuotaReached',
        expect.stringContaining('requested 500 MiB of GPU memory while 500 MiB'),
      ],
    ]),
  );
  expect(await scene.events('neighbour')).toEqual([]);
});

test('a pod is told of refusals, also of those while no gpu-proxy ran', async () => {
  await scene.serve({}, '--limits-sessions', '1');
  const { pod, socket, id } = await scene.started('refused', ['a']);
  const program = scene.run(
    pod,
    socket,
    'start(); say("ready"); sys.stdin.readline(); say("more", alloc(900 * MiB)); ' +
      'sys.stdin.readline()',
  );
  await program.printed('ready');
  expect(await scene.ask(pod, socket)).toEqual([
    'init 100\n',
    expect.stringContaining('all 1 sessions of allocation'),
  ]);
  const full = ['GpuLimitReached', expect.stringContaining('all 1 sessions of allocation')];
  await eventually(async () => expect(await scene.events('refused')).toEqual([full]));

  await scene.kill();
  program.process.stdin.write('\n');
  await program.printed('more 2');
  await scene.serve();
  const over = [
    'GpuMemoryQuotaReached',
    expect.stringContaining('requested 900 MiB of GPU memory'),
  ];
  await eventually(async () =>
    expect((await scene.events('refused')).sort()).toEqual([full, over]),
  );
  await scene.drain(id);
  expect(await scene.ask(pod, socket)).toEqual([
    'init 100\n',
    expect.stringContaining('takes no new sessions'),
  ]);
  const draining = ['GpuNotAvailable', expect.stringContaining('is being drained')];
  await eventually(async () =>
    expect((await scene.events('refused')).sort()).toEqual([full, over, draining]),
  );
  await program.finish();
});

const WAYS_TO_A_CALL = `
start()
def ask(name, version, function=ctypes.c_void_p()):
    must(name, b"cuMemAlloc", ctypes.byref(function), version, ctypes.c_uint64(0), *[None][: \
name.endswith("v2")])
    return function.value
def twice(address):
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)(address)
    return call(ctypes.addressof(ctypes.c_uint64()), 500 * MiB)
by_name = ctypes.cast(cuda.cuMemAlloc_v2, ctypes.c_void_p).value
own = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_LOCAL | 8)  # RTLD_DEEPBIND
handle = ctypes.cast(own.cuMemAlloc_v2, ctypes.c_void_p).value
say(twice(by_name), *(twice(way) for way in (handle, ask("cuGetProcAddress", 12000), \
ask("cuGetProcAddress_v2", 13000))))
`;

test('number 7: the quota holds for all ways to look up a call', async () => {
  await scene.serve();
  const { pod, socket } = await scene.started('finder', ['a']);
  expect(await scene.run(pod, socket, WAYS_TO_A_CALL).finish()).toBe('0 2 2 2\n');
});

test('a container of a version that is gone is refused, with an event', async () => {
  await scene.serve();
  const pod = await scene.createPod('old', { slots: 1 });
  scene.kubelet.give('old', 'main', ['a']);
  const program = scene.run(pod, scene.allocate(['a'], '00112233aabbccdd'), ASKING);
  expect(await program.finish()).toBe('init 100\n');
  expect(program.stderr).toContain(
    'Version 00112233aabbccdd of nvidia-virtual, which the container uses, is not installed in',
  );
  await eventually(async () =>
    expect(await scene.events('old')).toEqual([
      ['GpuVersionUnknown', expect.stringContaining('Delete the pod')],
    ]),
  );
});

test('a container of another version gets the worker of its version', async () => {
  const versions = path.join(scene.directory, 'versions');
  scene.installWorker(path.join(versions, '00112233aabbccdd'));
  await scene.serve({}, '--kubernetes-versions', versions);
  const pod = await scene.createPod('former', { slots: 1 });
  scene.kubelet.give('former', 'main', ['a']);
  const program = scene.run(pod, scene.allocate(['a'], '00112233aabbccdd'), HOLDING);
  await program.printed('got 0');
  const worker = (await scene.allocations())[0]?.sessions[0]?.workerPid;
  expect(readlinkSync(`/proc/${worker}/exe`)).toBe(
    path.join(versions, '00112233aabbccdd', 'nvidia-virtual-worker'),
  );
  await program.finish();
});

test('slots assigned to a pod are not given to one of another scheduler', async () => {
  await scene.serve({ NVIDIA_VIRTUAL_SIMULATED_GPUS: '2' });
  const [first, second] = (await scene.gpus()).map(({ uuid }) => uuid) as [string, string];
  const tenSlots = (letter: string) =>
    Array.from({ length: 10 }, (_, index) => `${letter}${index}`);
  const assigned = JSON.stringify({
    version: 1,
    containers: { main: [{ gpu: first, slots: 10 }] },
  });
  const ours = await scene.started('ours', tenSlots('a'), {
    annotations: { 'nvidia-virtual/assigned': assigned },
  });
  const foreign = await scene.started('foreign', ['b', 'c', 'd', 'e', 'f']);
  expect(await scene.ask(foreign.pod, foreign.socket)).toEqual(['init 0\n', '']);
  expect(scene.specification(foreign.id)).toMatchObject({ gpus: [second] });
  const large = await scene.started('large', tenSlots('g'));
  const [said, why] = await scene.ask(large.pod, large.socket);
  expect(said).toBe('init 100\n');
  expect(why).toContain(
    'GPU 0 (Simulated GPU) has 0 of its 10 slots free; GPU 1 (Simulated GPU) has 5 of its 10 ' +
      'slots free',
  );
  expect(await scene.ask(ours.pod, ours.socket)).toEqual(['init 0\n', '']);
  expect(scene.specification(ours.id)).toMatchObject({ gpus: [first] });
  await scene.patchStatus(ours.pod, { phase: 'Succeeded' });
  await eventually(() => expect(scene.directories()).not.toContain(ours.id));
  expect(await scene.ask(large.pod, large.socket)).toEqual(['init 0\n', '']);
  expect(scene.specification(large.id)).toMatchObject({ gpus: [first] });
});

test('an allocation that this gpu-proxy cannot serve keeps its slots', async () => {
  const machine = { NVIDIA_VIRTUAL_SIMULATED_GPUS: '2' };
  const sixSlots = (letter: string) => Array.from({ length: 6 }, (_, index) => `${letter}${index}`);
  const little = { annotations: { 'nvidia-virtual/memory': '64Mi' } };
  await scene.serve(machine);
  const newer = await scene.started('newer', sixSlots('a'), little);
  expect(await scene.ask(newer.pod, newer.socket)).toEqual(['init 0\n', '']);
  await scene.kill();
  const { gpus } = scene.specification(newer.id);
  scene.rewrite(newer.id, (specification) => ({ ...specification, version: 2 }));
  await scene.serve(machine);
  const next = await scene.started('next', sixSlots('b'), little);
  expect(await scene.ask(next.pod, next.socket)).toEqual(['init 0\n', '']);
  expect(scene.specification(next.id)['gpus']).not.toEqual(gpus);
});

test('a GPU that fell off the bus is unhealthy, gets no pods, and recovers', async () => {
  const failures = path.join(scene.directory, 'failures');
  writeFileSync(failures, '');
  await scene.serve(
    { NVIDIA_VIRTUAL_SIMULATED_GPUS: '2', NVIDIA_VIRTUAL_SIMULATED_FAILURES: failures },
    '--kubernetes-health-interval',
    '1s',
  );
  const health = async () => (await scene.gpus()).map(({ unhealthy }) => unhealthy);
  expect(await health()).toEqual(['', '']);
  writeFileSync(failures, '0\n');
  await eventually(async () =>
    expect(await health()).toEqual([expect.stringContaining('does not list the GPU any more'), '']),
  );
  const { pod, socket, id } = await scene.started('elsewhere', ['a']);
  expect(await scene.ask(pod, socket)).toEqual(['init 0\n', '']);
  expect(scene.specification(id)).toMatchObject({ gpus: [expect.stringMatching(/01$/)] });
  writeFileSync(failures, '');
  await eventually(async () => expect(await health()).toEqual(['', '']));
});

test('an Xid about the GPU is an event of the node, one of a program is not', async () => {
  const xids = path.join(scene.directory, 'xids');
  writeFileSync(xids, '');
  const http = path.join(scene.directory, 'http.sock');
  await scene.serve({ NVIDIA_VIRTUAL_SIMULATED_XIDS: xids }, '--http', http);
  const { pod, socket } = await scene.started('xids', ['a']);
  const program = scene.run(pod, socket, HOLDING);
  await program.printed('got 0');
  const metrics = () => scene.get(http, '/metrics');
  // The reader registers for Xids before its first reading.
  await until(async () => (await metrics()).includes('allocation_memory_reported_bytes{'));
  appendFileSync(xids, '0 31\n0 95\n');
  await eventually(async () =>
    expect((await scene.gpus()).map(({ unhealthy }) => unhealthy)).toEqual([
      expect.stringContaining('The driver reported Xid 95'),
    ]),
  );
  await eventually(async () =>
    expect(await scene.events(NODE)).toEqual([
      ['GpuXid', expect.stringMatching(/Xid 95 for GPU GPU-.*until it is reset/)],
    ]),
  );
  for (const series of [/xid="31".* 1$/m, /xid="95".* 1$/m])
    expect(await metrics()).toMatch(series);
  await program.finish();
});

test('gpu-proxy exits with status 0 if a GPU returns, and programs continue', async () => {
  const failures = path.join(scene.directory, 'failures');
  writeFileSync(failures, '0\n');
  const machine = {
    NVIDIA_VIRTUAL_SIMULATED_GPUS: '2',
    NVIDIA_VIRTUAL_SIMULATED_FAILURES: failures,
  };
  const interval = ['--kubernetes-health-interval', '1s'];
  await scene.serve(machine, ...interval);
  expect(await scene.gpus()).toHaveLength(1);
  const { pod, socket } = await scene.started('goes-on', ['a']);
  const program = scene.run(pod, socket, HOLDING);
  await program.printed('got 0');
  writeFileSync(failures, '');
  const { status, stdout } = await scene.proxy.end();
  expect([status, stdout]).toEqual([
    0,
    expect.stringContaining('appeared after gpu-proxy started'),
  ]);
  await scene.serve(machine, ...interval);
  expect((await scene.gpus()).map(({ unhealthy }) => unhealthy)).toEqual(['', '']);
  expect(await program.finish()).toContain('then 0');
});

test('number 19: metrics have the labels namespace, pod and container', async () => {
  const http = path.join(scene.directory, 'http.sock');
  await scene.serve({}, '--http', http);
  const { pod, socket } = await scene.started('metered', ['a']);
  const program = scene.run(pod, socket, HOLDING);
  await program.printed('got 0');
  const lines = (await scene.get(http, '/metrics'))
    .split('\n')
    .filter((line) => line.startsWith('nvidia_virtual_allocation_memory_used_bytes{'));
  expect(lines).toEqual([
    expect.stringMatching(/namespace="default",pod="metered",container="main".*} 104857600$/),
  ]);
  await program.finish();
});
