import { once } from 'node:events';
import { statSync, truncateSync } from 'node:fs';
import path from 'node:path';
import { cudaProgram } from '../testing/cuda-program.js';
import { lineOf, Scene } from '../testing/worker-under-test.js';
import { createFigures, readFigures } from './figures.js';

let scene: Scene;
let file: string;
beforeEach(() => {
  scene = new Scene();
  file = path.join(scene.directory, 'figures');
  createFigures(file);
});
afterEach(() => scene.remove());

test('a new file is zero, private to its owner, and is not created twice', () => {
  const figures = readFigures(file);
  expect(figures.launches + figures.pinned + figures.roundTrips.reduce((a, b) => a + b)).toBe(0);
  expect(figures.roundTrips).toHaveLength(32);
  expect([statSync(file).size, statSync(file).mode & 0o777]).toEqual([4096, 0o600]);
  expect(() => createFigures(file)).toThrow('EEXIST');
});

test('a truncated file reads as zeros', () => {
  truncateSync(file, 20);
  expect(readFigures(file).launches).toBe(0);
});

const PROGRAM = `
start()
address, host, module, function, stream, other = (ctypes.c_uint64() for _ in range(6))
must("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(1 << 20))
content = ctypes.create_string_buffer(300000)
must("cuMemcpyHtoD_v2", address, content, ctypes.c_size_t(300000))
must("cuMemcpyDtoH_v2", content, address, ctypes.c_size_t(1000))
must("cuMemcpyDtoD_v2", ctypes.c_uint64(address.value + 500000), address, ctypes.c_size_t(70))
must("cuMemsetD32_v2", address, ctypes.c_uint(7), ctypes.c_size_t(100))
must("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(1 << 20), 0)
must("cuStreamCreate", ctypes.byref(stream), 0)
ptx = b".version 7.0\\n.target sm_50\\n.address_size 64\\n.visible .entry nothing() { ret; }\\0"
must("cuModuleLoadData", ctypes.byref(module), ptx)
must("cuModuleGetFunction", ctypes.byref(function), module, b"nothing")
for i in range(5): must("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, stream, None, None)
must("cuStreamSynchronize", stream)
flags = ctypes.c_uint()
for i in range(640): must("cuStreamGetFlags", stream, ctypes.byref(flags))
say("running")
sys.stdin.readline()
must("cuMemFreeHost", host)
must("cuStreamDestroy_v2", stream)
must("cuDevicePrimaryCtxRelease_v2", 0)
say("released")
sys.stdin.readline()
`;

test('a worker counts the work of its program', async () => {
  const { client, connection } = await scene.connect(cudaProgram(PROGRAM));
  const worker = scene.startWorker(connection, ['--figures', file]);
  const ended = once(worker, 'close');
  expect(await lineOf(client)).toBe('running');
  const running = readFigures(file);
  expect(running.launches).toBe(5);
  expect(running.bytesCopied).toEqual({
    hostToDevice: 300_000,
    deviceToHost: 1000,
    deviceToDevice: 70,
  });
  expect([
    running.memsets,
    running.faults,
    running.contexts,
    running.threads,
    running.gateNanoseconds,
  ]).toEqual([1, 0, 1, 1, 0]);
  const timed = running.roundTrips.reduce((a, b) => a + b);
  expect(timed).toBeGreaterThanOrEqual(640);
  expect(timed % 64).toBe(0);

  client.stdin.write('\n');
  expect(await lineOf(client)).toBe('released');
  const released = readFigures(file);
  expect(released.contexts).toBe(0);
  expect(released.pinned).toBeLessThanOrEqual(running.pinned - 2 ** 20);

  client.stdin.end();
  await ended;
  expect(readFigures(file).launches).toBe(5);
  expect(scene.events().map(({ event }) => event)).toEqual(['started', 'ended']);
  expect(scene.events()[1]).toMatchObject({ launches: 5, reason: 'client exited' });
});

test('a worker refuses a file that is not a figures file, with a message', async () => {
  truncateSync(file, 100);
  const { client, connection } = await scene.connect(cudaProgram('say(result("cuInit", 0))'));
  const worker = scene.startWorker(connection, ['--figures', file]);
  const [status] = await once(worker, 'close');
  expect(status).toBe(1);
  expect(scene.logged()).toContain(`the figures file ${file} cannot be used: it is too short`);
  expect(await lineOf(client)).not.toBe('0');
});
