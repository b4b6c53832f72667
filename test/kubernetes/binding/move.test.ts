import { expect, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import { askNode } from '@nvidia-virtual/gpu-proxy/testing/ask-node';
import type { Assignment } from '@nvidia-virtual/kube-common/assignment';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { type BindingScene, bindingSuite, HOLDING, STUBBORN } from './scene.js';

const ASSIGNED = 'nvidia-virtual/assigned';
/** Keeps memory with known content, and compares it for each line of its input. */
const KEEPING = `
start()
content = os.urandom(MiB)
kept, found = ctypes.c_uint64(), ctypes.create_string_buffer(MiB)
must("cuMemAlloc_v2", ctypes.byref(kept), ctypes.c_size_t(MiB))
must("cuMemcpyHtoD_v2", kept, content, ctypes.c_size_t(MiB))
say("ready")
for line in sys.stdin:
    must("cuMemcpyDtoH_v2", found, kept, ctypes.c_size_t(MiB))
    say("right" if found.raw == content else "WRONG", line.strip())
`;

let scene: BindingScene;

bindingSuite('move', (made) => {
  scene = made;
});

function serve(...flags: string[]): Promise<void> {
  return scene.serve({ NVIDIA_VIRTUAL_SIMULATED_GPUS: '2' }, '--movable', 'true', ...flags);
}

async function uuids(): Promise<[string, string]> {
  return (await scene.gpus()).map(({ uuid }) => uuid) as [string, string];
}

/** What our scheduler writes. */
function assignment(gpu: string, more: Partial<Assignment> = {}): Record<string, string> {
  const containers = { main: [{ gpu, slots: 1 }] };
  return { [ASSIGNED]: JSON.stringify({ version: 1, containers, ...more }) };
}

async function annotate(name: string, annotations: Record<string, string>): Promise<void> {
  const now = await scene.api.readNamespacedPod({ name, namespace: 'default' });
  const body = { ...now, metadata: { ...now.metadata, annotations } };
  await scene.api.replaceNamespacedPod({ name, namespace: 'default', body });
}

/** Moves that the scheduler may complete, of the pod. */
async function arrivals({ metadata }: V1Pod): Promise<number[]> {
  const { arrivals: all } = await askNode(scene.state, 'listGpus', {});
  return all.filter(({ pod }) => pod === metadata?.uid).map(({ move }) => move);
}

async function untilOn(id: string, gpu: string): Promise<void> {
  await eventually(async () =>
    expect((await scene.allocations()).find((one) => one.id === id)?.gpuUuids).toEqual([gpu]),
  );
}

test('a pod follows the GPU that the scheduler assigns, and its next container too', async () => {
  await serve();
  const [a, b] = await uuids();
  const { pod, socket, id } = await scene.started('one', ['s'], { annotations: assignment(a) });
  const program = scene.run(pod, socket, KEEPING);
  await program.printed('ready');
  expect(await arrivals(pod)).toEqual([]);
  await annotate('one', assignment(b, { former: a, move: 1 }));
  await untilOn(id, b);
  await eventually(async () => expect(await arrivals(pod)).toEqual([1]));
  program.process.stdin.write('moved\n');
  await program.printed('right moved');
  await eventually(async () =>
    expect(await scene.events('one')).toEqual([
      ['GpuMoved', `Container main is on GPU 1 (${b}) now.`],
    ]),
  );
  await program.finish();
  await annotate('one', assignment(b, { move: 1 }));
  await eventually(async () => expect(await arrivals(pod)).toEqual([]));
  expect(await scene.run(pod, socket, HOLDING).finish()).toContain('then 0');
  expect(scene.specification(id)).toMatchObject({ gpus: [b], shownAs: a });
});

test('a pod without programs has arrived at once, and starts on the new GPU', async () => {
  await serve();
  const [a, b] = await uuids();
  const { pod, socket, id } = await scene.started('idle', ['s'], { annotations: assignment(a) });
  await annotate('idle', assignment(b, { former: a, move: 1 }));
  await eventually(async () => expect(await arrivals(pod)).toEqual([1]));
  const program = scene.run(pod, socket, HOLDING);
  await program.printed('got 0');
  expect(scene.specification(id)).toMatchObject({ gpus: [b] });
  await program.finish();
});

test('a refusal is an event; the pod stays where it is until its work ends', async () => {
  await serve();
  const [a, b] = await uuids();
  const { pod, socket, id } = await scene.started('busy', ['s'], { annotations: assignment(a) });
  const program = scene.run(pod, socket, STUBBORN);
  await program.printed('busy');
  await annotate('busy', assignment(b, { former: a, move: 1 }));
  await eventually(async () =>
    expect(await scene.events('busy')).toEqual([
      [
        'GpuNotMoved',
        expect.stringMatching(
          new RegExp(`cannot stop now: .*kubectl gpu-usage move busy -n default --gpu ${a}`),
        ),
      ],
    ]),
  );
  expect(await arrivals(pod)).toEqual([]);
  // The scheduler takes it back.
  await annotate('busy', assignment(a, { former: b, move: 2 }));
  await eventually(async () => expect(await arrivals(pod)).toEqual([2]));
  await untilOn(id, a);
  await annotate('busy', assignment(b, { former: a, move: 3 }));
  program.process.stdin.write('\n');
  await program.printed('then 0');
  await untilOn(id, b);
  await eventually(async () => expect(await arrivals(pod)).toEqual([3]));
  await program.finish();
});

test('an assignment that changed while gpu-proxy was killed is followed', async () => {
  await serve();
  const [a, b] = await uuids();
  const { pod, socket, id } = await scene.started('away', ['s'], { annotations: assignment(a) });
  const program = scene.run(pod, socket, KEEPING);
  await program.printed('ready');
  for (const [index, gpu] of [b, a, b].entries()) {
    await scene.kill();
    const former = gpu === a ? b : a;
    await annotate('away', assignment(gpu, { former, move: index + 1 }));
    await serve();
    // The next one is killed at any moment of the move.
    if (index === 1) await eventually(async () => expect(await uuids()).toEqual([a, b]));
    else await untilOn(id, gpu);
  }
  await eventually(async () => expect(await arrivals(pod)).toEqual([3]));
  program.process.stdin.write('still\n');
  await program.printed('right still');
  await program.finish();
});

test('after a reboot in the middle of a move, its containers start on the new GPU', async () => {
  await serve();
  const [a, b] = await uuids();
  const { pod, socket, id } = await scene.started('reboot', ['s'], { annotations: assignment(a) });
  const program = scene.run(pod, socket, KEEPING);
  await program.printed('ready');
  await scene.kill();
  program.process.kill('SIGKILL');
  await annotate('reboot', assignment(b, { former: a, move: 1 }));
  scene.rewrite(id, (specification) => ({ ...specification, moving: b }));
  scene.pretendReboot();
  await serve();
  await eventually(async () => expect(await arrivals(pod)).toEqual([1]));
  expect(await scene.run(pod, socket, HOLDING).finish()).toContain('then 0');
  expect(scene.specification(id)).toMatchObject({ gpus: [b] });
});

test('an allocation of a pod cannot be moved on its node, beside the scheduler', async () => {
  await serve();
  const [a, b] = await uuids();
  const { pod, socket, id } = await scene.started('own', ['s'], { annotations: assignment(a) });
  const program = scene.run(pod, socket, HOLDING);
  await program.printed('got 0');
  await expect(askNode(scene.state, 'moveAllocation', { id, gpu: b })).rejects.toThrow(
    'it belongs to pod default/own: use `kubectl gpu-usage move own -n default --gpu`',
  );
  await program.finish();
});
