import { existsSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { type BindingScene, bindingSuite } from './scene.js';

const MiB = 2 ** 20;
const SLOT = Math.floor((8192 * MiB) / 10);

let scene: BindingScene;

bindingSuite('nvml', (made) => {
  scene = made;
});

/** `shown()` and `pids()` ask NVML as a program of the container does. */
const NVML = `
nvml = ctypes.CDLL("libnvidia-ml.so.1")
device = ctypes.c_void_p()
say("init", nvml.nvmlInit_v2())
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
def shown():
  info = (ctypes.c_ulonglong * 3)()
  nvml.nvmlDeviceGetMemoryInfo(device, info)
  return [info[0] // MiB, info[2] // MiB]
def pids():
  infos, count = (ctypes.c_uint * 48)(), ctypes.c_uint(8)
  nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), infos)
  return [infos[6 * i] for i in range(count.value)]
def soon(ask, wanted):
  for i in range(600):
    if ask() == wanted: break
    time.sleep(0.1)
  return ask()
`;

test('NVML works before the first CUDA call of a container, and binds its grant', async () => {
  await scene.serve();
  const { pod, socket, id } = await scene.started('one', ['a', 'b']);
  const asking = scene.run(pod, socket, `${NVML}say(shown(), pids())`);
  expect(await asking.finish()).toBe(`init 0\n[${Math.floor((2 * SLOT) / MiB)}, 0] []\n`);
  const [allocation] = await scene.allocations();
  expect([allocation?.id, allocation?.owner?.pod]).toEqual([id, 'one']);
  expect(await scene.events('one')).toEqual([]);
});

test('NVML shows a program by its pid in the container', async () => {
  await scene.serve();
  const { pod, socket } = await scene.started('one', ['a']);
  const body =
    `start(); alloc(64 * MiB)\n${NVML}say(os.getpid() < 10, soon(shown, [819, 64]), ` +
    'soon(pids, [os.getpid()]) == [os.getpid()])';
  const wrapper = ['unshare', '--pid', '--fork', '--mount-proc'];
  const program = scene.run(pod, socket, body, wrapper);
  expect(await program.finish()).toBe('init 0\nTrue [819, 64] True\n');
});

test('a container that gpu-proxy refuses has no NVML, and learns nothing', async () => {
  await scene.serve({}, '--kubernetes-patience', '1s');
  const { socket } = await scene.started('victim', ['a']);
  const thief = await scene.createPod('thief', { slots: 1 });
  const refused = scene.run(thief, socket, NVML);
  expect(await refused.finish()).toBe('init 9\n'); // NVML_ERROR_DRIVER_NOT_LOADED
  expect(existsSync(`${socket}.nvml`)).toBe(false);
});
