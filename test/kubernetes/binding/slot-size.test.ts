import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { type BindingScene, bindingSuite, HOLDING } from './scene.js';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** Two models of GPUs. */
const MODELS = {
  NVIDIA_VIRTUAL_SIMULATED_GPUS: '2',
  NVIDIA_VIRTUAL_SIMULATED_MEMORY: '16GiB,8GiB',
};
const [LARGE, SMALL] = [0, 1].map((index) => `GPU-73696d75-6c61-4064-a970-75000000000${index}`);

let scene: BindingScene;

bindingSuite('slot-size', (made) => {
  scene = made;
});

async function sizes(): Promise<number[][]> {
  return (await scene.gpus()).map(({ slots, slotMemoryBytes }) => [slots, slotMemoryBytes]);
}

test('a request by memory is the same memory and time on each model of GPU', async () => {
  await scene.serve(MODELS, '--slot-memory', '1GiB');
  expect(await sizes()).toEqual([
    [16, GIB],
    [8, GIB],
  ]);
  const request = { 'nvidia-virtual/memory': '1500Mi', 'nvidia-virtual/cores': '20' };
  for (const [name, main] of [
    ['on-large', { gpu: LARGE, slots: 2, taken: 4 }],
    ['on-small', { gpu: SMALL, slots: 2 }],
  ] as const) {
    const assigned = JSON.stringify({ version: 1, containers: { main: [main] } });
    const { pod, socket, id } = await scene.started(name, [`${name}-a`, `${name}-b`], {
      annotations: { ...request, 'nvidia-virtual/assigned': assigned },
    });
    const program = scene.run(pod, socket, HOLDING);
    await program.printed('got 0 1500');
    expect(scene.specification(id)).toMatchObject({
      gpus: [main.gpu],
      memory: 1500 * MIB,
      share: 20,
    });
    expect(await program.finish()).toContain('then 0');
  }
});

test('a change of slotMemory leaves running programs and their quota as they are', async () => {
  await scene.serve(MODELS, '--slot-memory', '1GiB');
  const { pod, socket, id } = await scene.started('before', ['a', 'b']);
  const program = scene.run(pod, socket, HOLDING);
  await program.printed('got 0 2048');
  const before = scene.specification(id);
  scene.proxy.process.kill('SIGTERM');
  await scene.proxy.end();
  await scene.serve(MODELS, '--slot-memory', '7GiB');
  expect(await sizes()).toEqual([
    [2, 7 * GIB],
    [1, 7 * GIB],
  ]);
  expect(scene.specification(id)).toEqual(before);
  expect(await program.finish()).toContain('then 0');
  const later = await scene.started('later', ['c']);
  expect(await scene.ask(later.pod, later.socket)).toEqual(['init 0\n', '']);
  expect(scene.specification(later.id)).toMatchObject({ memory: 7 * GIB });
});

test('pods on an oversubscribed GPU have more slots, and its memory in turns', async () => {
  await scene.serve({}, '--oversubscription', '1.5', '--host-memory', '16GiB');
  const [gpu] = await scene.gpus();
  expect([gpu?.slots, gpu?.mostSlots]).toEqual([15, 10]);
  const slots = (name: string) => Array.from({ length: 7 }, (_, index) => `${name}-${index}`);
  const [one, other] = [
    await scene.started('one', slots('a')),
    await scene.started('two', slots('b')),
  ];
  const programs = [one, other].map(({ pod, socket }) => scene.run(pod, socket, HOLDING));
  for (const program of programs) await program.printed('got 0');
  for (const program of programs) expect(await program.finish()).toContain('then 0');
});

test('a reload with too little hostMemory for all slots is refused', async () => {
  const config = path.join(scene.directory, 'gpu-proxy.json');
  const hostMemory = (limit: string) =>
    writeFileSync(config, JSON.stringify({ hostMemory: limit }));
  hostMemory('16GiB');
  await scene.serve({}, '--oversubscription', '1.5', '--config', config);
  hostMemory('1GiB');
  scene.proxy.process.kill('SIGHUP');
  await scene.proxy.printed('but hostMemory is 1 GiB. Raise hostMemory');
  expect((await scene.gpus())[0]).toMatchObject({ slots: 15 });
});
