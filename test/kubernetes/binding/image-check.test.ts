import { copyFileSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { locateInstallation } from '@nvidia-virtual/gpu-proxy/host/installation';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { type BindingScene, bindingSuite } from './scene.js';

let scene: BindingScene;
bindingSuite('image-check', (made) => {
  scene = made;
});

/** Copies a library under a name, as an image has it. */
function fileOfImage(name: string): string {
  const file = path.join(scene.directory, 'image', name);
  mkdirSync(path.dirname(file), { recursive: true });
  copyFileSync(path.join(locateInstallation().interposerDirectory, 'libcuda.so.1'), file);
  return file;
}

/** A program that maps a file as code, and makes no call. */
function mapping(file: string): string {
  return `
import mmap, os, sys
file = os.open(${JSON.stringify(file)}, os.O_RDONLY)
held = mmap.mmap(file, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)
print('mapped', flush=True)
sys.stdin.readline()`;
}

async function runMapping(name: string, file: string): Promise<void> {
  const { pod, socket } = await scene.started(name, [name]);
  const program = scene.run(pod, socket, mapping(file));
  await program.printed('mapped');
  await scene.tellStarted(pod, 'main', program.containerId);
}

test("a pod whose program loads the image's own libcuda.so.1 gets one event", async () => {
  await scene.serve();
  const file = fileOfImage('usr/local/cuda/compat/libcuda.so.550.54.15');
  await runMapping('compat', file);
  await eventually(async () =>
    expect(await scene.events('compat')).toEqual([
      ['GpuImageUnsuitable', expect.stringContaining(`has loaded ${file}, which finds no GPU`)],
    ]),
  );
});

test('a pod with musl gets an event', async () => {
  await scene.serve();
  await runMapping('alpine', fileOfImage('lib/ld-musl-x86_64.so.1'));
  await eventually(async () =>
    expect(await scene.events('alpine')).toEqual([
      ['GpuImageUnsuitable', expect.stringContaining('C library musl')],
    ]),
  );
});

test('our files, and another container of the pod, are no reason for an event', async () => {
  const versions = path.join(scene.directory, 'image', 'versions');
  await scene.serve({ NVIDIA_VIRTUAL_KUBERNETES_VERSIONS: versions });
  await runMapping('second', fileOfImage('versions/0000000000000001/container/libcuda.so'));
  const ours = path.join(locateInstallation().interposerDirectory, 'libcuda.so.1');
  await runMapping('ours', ours);
  const { pod, socket } = await scene.started('served', ['served']);
  const sidecar = scene.run(pod, socket, mapping(fileOfImage('opt/b/libcuda.so.1')));
  await sidecar.printed('mapped');
  await scene.tellStarted(pod, 'sidecar', sidecar.containerId);
  // The last one: when it has its event, all were examined.
  await runMapping('last', fileOfImage('opt/libcuda.so.1'));
  await eventually(async () => expect(await scene.events('last')).toHaveLength(1));
  expect(await scene.events('ours')).toEqual([]);
  expect(await scene.events('second')).toEqual([]);
  expect(await scene.events('served')).toEqual([]);
  expect((await scene.ask(pod, socket))[0]).toContain('init 0');
});
