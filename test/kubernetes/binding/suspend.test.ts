import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import type { V1Pod } from '@kubernetes/client-node';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { ASKING, type BindingScene, bindingSuite, HOLDING, idOf, NODE, STUBBORN } from './scene.js';

const SUSPENDED = 'nvidia-virtual/suspended';

let scene: BindingScene;

bindingSuite('suspend', (made) => {
  scene = made;
});

/** As `kubectl annotate` does. */
async function annotate({ metadata }: V1Pod, value: string | undefined): Promise<void> {
  const name = metadata?.name as string;
  const now = await scene.api.readNamespacedPod({ name, namespace: 'default' });
  const { [SUSPENDED]: _, ...others } = now.metadata?.annotations ?? {};
  const annotations = value === undefined ? others : { ...others, [SUSPENDED]: value };
  const body = { ...now, metadata: { ...now.metadata, annotations } };
  await scene.api.replaceNamespacedPod({ name, namespace: 'default', body });
}

async function untilSuspended(id: string, suspended = true): Promise<void> {
  await eventually(async () =>
    expect((await scene.allocations()).find((one) => one.id === id)).toMatchObject({ suspended }),
  );
}

/** The arenas that count. */
function heldFiles(): unknown {
  return JSON.parse(readFileSync(path.join(scene.state, 'arenas.json'), 'utf8'));
}

async function reasons(pod: string): Promise<string[]> {
  return (await scene.events(pod)).map(([reason]) => reason).sort();
}

/** A pod with a program that has allocated memory. */
async function holding(name: string, ...flags: string[]) {
  await scene.serve({}, ...flags);
  const { pod, socket, id } = await scene.started(name, ['a']);
  const program = scene.run(pod, socket, HOLDING);
  await program.printed('got 0');
  return { pod, id, program };
}

test('the annotation of a pod suspends it, and the pod has events that say so', async () => {
  const { pod, id, program } = await holding('one');
  await annotate(pod, 'true');
  await untilSuspended(id);
  program.process.stdin.write('\n');
  await eventually(async () =>
    expect(await scene.events('one')).toEqual([
      [
        'GpuSuspended',
        'The CUDA calls of container main wait: it is suspended by nvidia-virtual/suspended. ' +
          '`kubectl gpu-usage resume one -n default` removes it.',
      ],
    ]),
  );
  expect(program.stdout).not.toContain('then');
  await annotate(pod, 'false');
  expect(await program.finish()).toContain('then 0\n');
  await eventually(async () =>
    expect(await reasons('one')).toEqual(['GpuResumed', 'GpuSuspended']),
  );
});

test('all containers of a pod are suspended, one of them when its work has ended', async () => {
  await scene.serve();
  const containers = ['main', 'other'].map((name) => ({
    name,
    image: 'any',
    resources: { limits: { [RESOURCE]: '1' } },
  }));
  const body = { metadata: { name: 'both' }, spec: { nodeName: NODE, containers } };
  const pod = await scene.api.createNamespacedPod({ namespace: 'default', body });
  const [main, other] = ['main', 'other'].map((name) => {
    scene.kubelet.give('both', name, [name]);
    return scene.allocate([name]);
  }) as [string, string];
  const stubborn = scene.run(pod, main, STUBBORN);
  const quiet = scene.run(pod, other, HOLDING);
  await stubborn.printed('busy');
  await quiet.printed('got 0');
  await annotate(pod, 'true');
  await untilSuspended(idOf(other));
  await eventually(async () =>
    expect(await reasons('both')).toEqual(['GpuNotSuspended', 'GpuSuspended']),
  );
  expect(await scene.events('both')).toContainEqual([
    'GpuNotSuspended',
    expect.stringMatching(
      /cannot stop now: one of its calls does not end.* The node tries again as long as/,
    ),
  ]);
  await untilSuspended(idOf(main), false);
  stubborn.process.stdin.write('\n');
  await untilSuspended(idOf(main));
  await annotate(pod, undefined);
  expect(await stubborn.finish()).toContain('then 0\n');
  expect(await quiet.finish()).toContain('then 0\n');
});

test('a pod that is created with the annotation waits in cuInit', async () => {
  await scene.serve();
  const { pod, socket, id } = await scene.started('two', ['a'], {
    annotations: { [SUSPENDED]: 'true' },
  });
  const program = scene.run(pod, socket, ASKING);
  await untilSuspended(id);
  expect(scene.specification(id)).toMatchObject({ suspendedBy: ['pod'] });
  expect(program.stdout).toBe('');
  await eventually(async () => expect(await reasons('two')).toEqual(['GpuSuspended']));
  await annotate(pod, undefined);
  expect(await program.finish()).toBe('init 0\n');
});

test('a refused suspension ends with the annotation', async () => {
  await scene.serve();
  const { pod, socket, id } = await scene.started('four', ['a']);
  const program = scene.run(pod, socket, STUBBORN);
  await program.printed('busy');
  await annotate(pod, 'true');
  await eventually(async () => expect(await reasons('four')).toEqual(['GpuNotSuspended']));
  await annotate(pod, undefined);
  expect(await program.finish()).toContain('then 0');
  await untilSuspended(id, false);
});

test('annotations that changed while gpu-proxy was away are followed', async () => {
  const { pod, id, program } = await holding('away');
  await scene.kill();
  await annotate(pod, 'true');
  await scene.serve();
  await untilSuspended(id);
  program.process.stdin.write('\n');
  await scene.kill();
  await scene.serve();
  await untilSuspended(id);
  expect(program.stdout).not.toContain('then');
  await scene.kill();
  await annotate(pod, undefined);
  await scene.serve();
  expect(await program.finish()).toContain('then 0\n');
});

test('a pod stays suspended after a reboot, until its containers have started again', async () => {
  await scene.serve();
  const { pod, socket, id } = await scene.started('reboot', ['a'], {
    annotations: { [SUSPENDED]: 'true' },
  });
  const program = scene.run(pod, socket, ASKING);
  await untilSuspended(id);
  program.process.kill('SIGKILL');
  await scene.kill();
  scene.pretendReboot();
  await scene.serve();
  const next = scene.run(pod, socket, ASKING);
  await eventually(() => expect(scene.proxy.stdout).toContain('allocation found again'));
  await untilSuspended(id);
  expect(next.stdout).toBe('');
  await annotate(pod, 'false');
  expect(await next.finish()).toBe('init 0\n');
});

test('a pod that its user and an administrator suspended needs both to go on', async () => {
  const { pod, id, program } = await holding('five');
  await scene.call('suspendAllocation', id);
  await annotate(pod, 'true');
  await eventually(() =>
    expect(scene.specification(id)).toMatchObject({ suspendedBy: ['node', 'pod'] }),
  );
  await expect(scene.call('resumeAllocation', id)).rejects.toThrow(
    'its pod has the annotation nvidia-virtual/suspended',
  );
  await scene.call('suspendAllocation', id);
  await annotate(pod, undefined);
  await eventually(() => expect(scene.specification(id)).toMatchObject({ suspendedBy: ['node'] }));
  expect(await scene.allocations()).toMatchObject([{ suspended: true }]);
  await scene.call('resumeAllocation', id);
  expect(await program.finish()).toContain('then 0\n');
});

test('a suspended pod that is deleted leaves nothing', async () => {
  const { pod, id, program } = await holding('six');
  await annotate(pod, 'true');
  await untilSuspended(id);
  program.process.stdin.write('\n');
  program.process.kill('SIGKILL'); // as the kubelet does after the grace period
  await scene.deletePod('six');
  scene.kubelet.take('six', 'main');
  await eventually(() => expect(scene.directories()).toEqual([]));
});

const OVERSUBSCRIBED = ['--oversubscription', '2', '--host-memory', '17GiB'];

test('on an oversubscribed GPU, only suspensions by users are events', async () => {
  const { pod, id, program } = await holding('turns', ...OVERSUBSCRIBED);
  await annotate(pod, 'true');
  await untilSuspended(id);
  await annotate(pod, undefined);
  await untilSuspended(id, false);
  await eventually(async () =>
    expect(await reasons('turns')).toEqual(['GpuResumed', 'GpuSuspended']),
  );
  expect(await scene.events('turns')).toContainEqual([
    'GpuResumed',
    'Container main has its GPU again as soon as its turn comes.',
  ]);
  expect(await program.finish()).toContain('then 0\n');
});

test('the next gpu-proxy says that a pod on an oversubscribed GPU has it again', async () => {
  const { pod, id, program } = await holding('again', ...OVERSUBSCRIBED);
  await annotate(pod, 'true');
  await untilSuspended(id);
  await eventually(async () => expect(await reasons('again')).toEqual(['GpuSuspended']));
  await scene.kill();
  await annotate(pod, undefined);
  await scene.serve({}, ...OVERSUBSCRIBED);
  await eventually(async () =>
    expect(await reasons('again')).toEqual(['GpuResumed', 'GpuSuspended']),
  );
  expect(await program.finish()).toContain('then 0\n');
});

test('a suspension that a killed gpu-proxy did not report is reported', async () => {
  const { pod, id, program } = await holding('untold');
  await scene.kill();
  await annotate(pod, 'true');
  // As it is before the event is written.
  scene.rewrite(id, (one) => ({ ...one, suspended: true, suspendedBy: ['pod'] }));
  await scene.serve();
  await eventually(async () => expect(await reasons('untold')).toEqual(['GpuSuspended']));
  expect(scene.specification(id)).toMatchObject({ suspended: true });
  await annotate(pod, undefined);
  expect(await program.finish()).toContain('then 0\n');
});

test('a resumption that a killed gpu-proxy did not report is reported once', async () => {
  const { pod, id, program } = await holding('silent');
  await annotate(pod, 'true');
  await eventually(() => expect(scene.specification(id)).toMatchObject({ toldSuspended: true }));
  await scene.kill();
  await annotate(pod, undefined);
  // As it is before the event is written, and as it is right afterwards.
  for (const suspension of [{ suspended: false, suspendedBy: undefined }, {}]) {
    scene.rewrite(id, (one) => ({ ...one, ...suspension, toldSuspended: true }));
    await scene.serve();
    await eventually(() => expect(scene.specification(id)['toldSuspended']).toBeUndefined());
    expect(await reasons('silent')).toEqual(['GpuResumed', 'GpuSuspended']);
    await scene.kill();
  }
  await scene.serve();
  expect(await program.finish()).toContain('then 0\n');
});

test('a pod that is deleted while its memory is out for others leaves nothing', async () => {
  const { pod, id, program } = await holding('away', ...OVERSUBSCRIBED);
  await annotate(pod, 'true');
  await untilSuspended(id);
  // No program asks for its memory now, so it stays out.
  await annotate(pod, undefined);
  await untilSuspended(id, false);
  expect(await scene.allocations()).toMatchObject([{ state: 'MEMORY_STATE_OUT' }]);
  program.process.kill('SIGKILL');
  await scene.deletePod('away');
  scene.kubelet.take('away', 'main');
  await eventually(() => expect(scene.directories()).toEqual([]));
  await eventually(() => expect(heldFiles()).toEqual([]));
});
