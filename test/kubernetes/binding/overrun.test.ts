import { expect, test } from '@jest/globals';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { type BindingScene, bindingSuite } from './scene.js';

const DEVICE_UNAVAILABLE = 46;
const PTX = `.version 7.0
.target sm_50
.address_size 64
.visible .entry endless() { again: bra again; }
.visible .entry short() { ret; }
`;
const KERNELS = `
import threading
start()
module = ctypes.c_void_p()
must("cuModuleLoadData", ctypes.byref(module), ${JSON.stringify(PTX)}.encode())
def kernel(name):
    function = ctypes.c_void_p()
    must("cuModuleGetFunction", ctypes.byref(function), module, name)
    return function
def stream():
    made = ctypes.c_void_p()
    must("cuStreamCreate", ctypes.byref(made), 1)
    return made
def launch(function, stream):
    return result("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, stream, None, None)
def repeat(goes_on):
    short, own, rounds = kernel(b"short"), stream(), 0
    while goes_on() and launch(short, own) == 0 and result("cuStreamSynchronize", own) == 0:
        rounds += 1
        if rounds == 10: say("works")
    return rounds
`;
/** Its other thread has work for each of its turns, while the kernel does not end. */
const ENDLESS = `${KERNELS}
must_end = stream()
say("launched", launch(kernel(b"endless"), must_end))
context = ctypes.c_void_p()
must("cuCtxGetCurrent", ctypes.byref(context))
def others():
    must("cuCtxSetCurrent", context)
    repeat(lambda: True)
threading.Thread(target=others).start()
say("ended", result("cuStreamSynchronize", must_end))
`;
const BUSY = `${KERNELS}
reader = threading.Thread(target=sys.stdin.readline)
reader.start()
say("rounds", repeat(reader.is_alive), "then", alloc(1))
`;

let scene: BindingScene;

bindingSuite('overrun', (made) => {
  scene = made;
});

test('a kernel that never ends is ended with a message, whatever its program adds', async () => {
  await scene.serve({}, '--overrun-limit', '2s');
  const stubborn = await scene.started('stubborn', ['a', 'b', 'c']);
  const neighbour = await scene.started('neighbour', ['d']);
  const endless = scene.run(stubborn.pod, stubborn.socket, ENDLESS);
  await endless.printed('launched 0');
  const busy = scene.run(neighbour.pod, neighbour.socket, BUSY);
  await busy.printed('works');
  await endless.printed(`ended ${DEVICE_UNAVAILABLE}`);
  await endless.finish();
  expect(endless.stderr).toMatch(/work of this program ran on for \d+ s after its turn/);
  await eventually(async () =>
    expect(await scene.events('stubborn')).toEqual([
      ['GpuLimitReached', expect.stringMatching(/its work ran for \d+ s after its window/)],
    ]),
  );
  expect(await busy.finish()).toMatch(/^works\nrounds \d+ then 0\n$/);
  const next = await scene.ask(stubborn.pod, stubborn.socket);
  expect(next).toEqual(['init 0\n', '']);
});
