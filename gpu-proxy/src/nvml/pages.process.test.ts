import { CommandUnderTest, Place } from '../testing/command-under-test.js';
import { cudaProgram } from '../testing/cuda-program.js';

let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.remove());

/** Calls of libnvidia-ml.so.1 for the body of a Python program. */
const NVML = `
import os
number, wide = ctypes.c_uint, ctypes.c_ulonglong
class Memory(ctypes.Structure):
  _fields_ = [("total", wide), ("free", wide), ("used", wide)]
class Process(ctypes.Structure):
  _fields_ = [("pid", number), ("memory", wide), ("gpuInstance", number), ("instance", number)]
nvml = ctypes.CDLL("libnvidia-ml.so.1")
def nvmlMust(name, *words):
  status = getattr(nvml, name)(*words)
  if status != 0: raise Exception("%s: %d" % (name, status))
nvmlMust("nvmlInit_v2")
device = ctypes.c_void_p()
nvmlMust("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(device))
def shown():
  info = Memory()
  nvmlMust("nvmlDeviceGetMemoryInfo", device, ctypes.byref(info))
  return [info.total // MiB, info.used // MiB]
def processes():
  list, count = (Process * 8)(), ctypes.c_uint(8)
  nvmlMust("nvmlDeviceGetComputeRunningProcesses_v3", device, ctypes.byref(count), list)
  return [[each.pid == os.getpid(), each.memory // MiB] for each in list[:count.value]]
def soon(ask, wanted):
  for i in range(600):
    if ask() == wanted: break
    time.sleep(0.1)
  return ask()
def text(name, *words):
  buffer = ctypes.create_string_buffer(96)
  nvmlMust(name, *words, buffer, 96)
  return buffer.value.decode()
`;

function run(options: string[], body: string): CommandUnderTest {
  const command = cudaProgram(NVML + body);
  return new CommandUnderTest(place, [
    'run',
    '--backend',
    'simulated',
    ...options,
    '--',
    ...command,
  ]);
}

test('NVML shows the quota as the GPU, before the first CUDA call', async () => {
  const body = 'say(text("nvmlDeviceGetName", device), shown(), processes())';
  const { stdout, stderr } = await run(['--memory', '512MiB', '--verbose'], body).end();
  expect(stdout).toBe('Simulated GPU [512, 0] []\n');
  expect(stderr).toContain('never called CUDA');
  expect(place.leftovers()).toEqual([]);
});

test('NVML shows the memory of the program, and the program by its pid', async () => {
  const body =
    'start(); alloc(64 * MiB)\n' + 'say(soon(shown, [512, 64]), soon(processes, [[True, 64]]))';
  const { stdout } = await run(['--memory', '512MiB'], body).end();
  expect(stdout).toBe('[512, 64] [[True, 64]]\n');
});

test('NVML and CUDA name the same GPU', async () => {
  const body =
    'start(); bus = ctypes.create_string_buffer(32)\n' +
    'must("cuDeviceGetPCIBusId", bus, 32, 0)\n' +
    'same = ctypes.c_void_p()\n' +
    'nvmlMust("nvmlDeviceGetHandleByPciBusId_v2", bus, ctypes.byref(same))\n' +
    'say(same.value == device.value, text("nvmlDeviceGetUUID", device))';
  const { stdout } = await run([], body).end();
  expect(stdout).toMatch(/^True GPU-73696d75-/);
});

test('a client that shuts down its side of the connection gets no worker', async () => {
  const body =
    'import socket\n' +
    'client = socket.socket(socket.AF_UNIX)\n' +
    'client.connect(os.environ["NVIDIA_VIRTUAL_SOCKET"])\n' +
    'client.shutdown(socket.SHUT_WR)\n' +
    'say(client.recv(1))';
  const { stdout, stderr } = await run(['--verbose'], body).end();
  expect(stdout).toBe("b''\n");
  expect(stderr).toContain('never called CUDA');
});

test('a page that does not change gets the time of each reading', async () => {
  const body =
    'page = lambda: os.stat(os.environ["NVIDIA_VIRTUAL_SOCKET"] + ".nvml")\n' +
    'start(); alloc(64 * MiB); soon(shown, [512, 64])\n' +
    'def dated():\n' +
    '  before = page()\n' +
    '  soon(lambda: page().st_mtime > before.st_mtime, True)\n' +
    '  return [page().st_mtime > before.st_mtime, page().st_ino == before.st_ino]\n' +
    'say(soon(dated, [True, True]))';
  const { stdout } = await run(['--memory', '512MiB'], body).end();
  expect(stdout).toBe('[True, True]\n');
});
