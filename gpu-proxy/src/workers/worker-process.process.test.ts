// The command line of the native worker, tested on a real one with the simulated driver.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { QuotaFile } from '../allocations/quota.js';
import { cudaProgram } from '../testing/cuda-program.js';
import { lineOf, linesOf, outputOf, Scene } from '../testing/worker-under-test.js';

let scene: Scene;
beforeEach(() => {
  scene = new Scene();
});
afterEach(() => scene.remove());

const MIB = 2 ** 20;

function quotaFile(limit: number): QuotaFile {
  return QuotaFile.create(path.join(scene.directory, 'quota'), limit);
}

function quotaArguments(quota: QuotaFile, limit: number): string[] {
  return [
    '--quota',
    quota.path,
    '--quota-slot',
    String(quota.takeSlot()),
    '--memory-limit',
    String(limit),
  ];
}

test('--inventory lists the GPUs', () => {
  const { worker, simulatedDriver } = scene.installation;
  const env = {
    ...process.env,
    NVIDIA_VIRTUAL_SIMULATED_GPUS: '2',
    NVIDIA_VIRTUAL_SIMULATED_MEMORY: '512MiB',
    CUDA_VISIBLE_DEVICES: '1',
  };
  const { status, stdout } = spawnSync(worker, ['--inventory', '--driver', simulatedDriver], {
    env,
    encoding: 'utf8',
  });
  expect(status).toBe(0);
  const { gpus } = JSON.parse(stdout);
  expect(gpus.map((gpu: { index: number }) => gpu.index)).toEqual([0, 1]);
  expect(gpus[0]).toEqual({
    uuid: expect.stringMatching(/^GPU-[0-9a-f-]{36}$/),
    index: 0,
    name: 'Simulated GPU',
    memory: 512 * MIB,
    contextMemory: expect.any(Number),
    streamMemory: expect.any(Number),
    heapMemory: 8 * MIB,
  });
  expect(gpus[1].uuid).not.toBe(gpus[0].uuid);
});

test('--inventory with a file that is no driver fails with a message', () => {
  const { status, stdout, stderr } = spawnSync(
    scene.installation.worker,
    ['--inventory', '--driver', '/nonexistent/libcuda.so.1'],
    {
      encoding: 'utf8',
    },
  );
  expect([status, stdout]).toEqual([1, '']);
  expect(stderr).toContain('/nonexistent/libcuda.so.1 cannot be loaded');
});

test('--max-handles: out of memory until an object is destroyed, reported once', async () => {
  const program = `
start()
def stream():
    made = ctypes.c_uint64()
    return result("cuStreamCreate", ctypes.byref(made), 0), made
made = []
while True:
    status, one = stream()
    if status != 0: break
    made.append(one)
again = stream()[0]
must("cuStreamDestroy_v2", made[0])
say(len(made), status, again, stream()[0], stream()[0])
`;
  const { client, connection } = await scene.connect(cudaProgram(program));
  scene.startWorker(connection, ['--max-handles', '100']);
  expect(await outputOf(client)).toBe('99 2 2 0 2\n'); // the context is one, too
  expect(scene.events().filter(({ event }) => event === 'overHandles')).toEqual([
    { event: 'overHandles', limit: 100 },
  ]);
});

test('--max-handles and --max-threads count all live sessions together', async () => {
  const quota = quotaFile(0);
  const program = `
start()
made = 0
while True:
    stream = ctypes.c_uint64()
    if result("cuStreamCreate", ctypes.byref(stream), 0) != 0: break
    made += 1
    if made == 40: break
say(made)
sys.stdin.readline()
`;
  const limits = ['--max-handles', '64', '--max-threads', '2'];
  const sessions = [];
  for (let i = 0; i < 2; i++) {
    const { client, connection } = await scene.connect(cudaProgram(program));
    const worker = scene.startWorker(connection, [...quotaArguments(quota, 0), ...limits]);
    sessions.push({ client, worker, made: Number(await lineOf(client)) });
  }
  expect(sessions.map(({ made }) => made)).toEqual([40, 22]); // and one context each
  expect([0, 1].map((slot) => quota.readSlot(slot))).toMatchObject([
    { handles: 41, threads: 1 },
    { handles: 23, threads: 1 },
  ]);

  const third = await scene.connect(cudaProgram(program));
  const worker = scene.startWorker(third.connection, [...quotaArguments(quota, 0), ...limits]);
  const ended = once(worker, 'exit');
  await outputOf(third.client);
  await ended;
  expect(scene.events()).toContainEqual({ event: 'overThreads', limit: 2 });

  const [first] = sessions;
  const firstEnded = once(first?.worker as ChildProcess, 'exit');
  first?.client.stdin.end();
  await firstEnded;
  quota.releaseSlot(0);
  const fourth = await scene.connect(cudaProgram(program));
  scene.startWorker(fourth.connection, [...quotaArguments(quota, 0), ...limits]);
  expect(await lineOf(fourth.client)).toBe('40');
  quota.close();
});

test('--max-pinned counts all sessions of the allocation', async () => {
  const quota = quotaFile(0);
  const program = `
start()
def pinned(size):
    address = ctypes.c_uint64()
    return result("cuMemHostAlloc", ctypes.byref(address), ctypes.c_size_t(size), 0), address
first, address = pinned(40 * MiB)
say(first, pinned(40 * MiB)[0], pinned(10 * MiB)[0])
sys.stdin.readline()
must("cuMemFreeHost", address)
say("freed")
sys.stdin.readline()
`;
  const sessions = [];
  for (let i = 0; i < 2; i++) {
    const { client, connection } = await scene.connect(cudaProgram(program));
    scene.startWorker(connection, [...quotaArguments(quota, 0), '--max-pinned', String(64 * MIB)]);
    sessions.push({ client, line: await lineOf(client) });
  }
  expect(sessions.map(({ line }) => line)).toEqual(['0 2 0', '2 2 0']);
  expect(quota.readSlot(0).pinned + quota.readSlot(1).pinned).toBe(60 * MIB);
  const over = { event: 'overPinned', asked: 40 * MIB, limit: 64 * MIB };
  // both sessions, one entry each
  expect(scene.events().filter(({ event }) => event === 'overPinned')).toEqual([over, over]);
  sessions[0]?.client.stdin.write('\n');
  await lineOf(sessions[0]?.client as never);
  expect(quota.readSlot(0).pinned).toBe(10 * MIB);
  quota.close();
});

test('a context releases its staging memory: a program may reset any number of times', async () => {
  const quota = quotaFile(0);
  const program = `
start()
source = ctypes.create_string_buffer(16 * MiB)
def copy():
    address = ctypes.c_uint64()
    status = result("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(16 * MiB))
    return status or result("cuMemcpyHtoD_v2", address, source, ctypes.c_size_t(16 * MiB))
for turn in range(4):
    say(copy())
    must("cuCtxSetCurrent", None)
    if turn % 2: must("cuDevicePrimaryCtxReset_v2", 0)
    must("cuDevicePrimaryCtxRelease_v2", 0)
    start()
say("over")
sys.stdin.readline()
`;
  const { client, connection } = await scene.connect(cudaProgram(program));
  scene.startWorker(connection, [...quotaArguments(quota, 0), '--max-pinned', String(48 * MIB)]);
  const said = [];
  for (let turn = 0; turn < 5; turn++) said.push(await lineOf(client));
  expect(said).toEqual(['0', '0', '0', '0', 'over']);
  expect(quota.readSlot(0)).toMatchObject({ used: 0, pinned: 0 });
  quota.close();
});

test.each([
  ['', []],
  [' in the legacy memory layout', ['setarch', '-L']],
])('copies find out by the address where the memory of a program%s is', async (_, wrapper) => {
  const program = `
start()
def device():
    address = ctypes.c_uint64()
    must("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(MiB))
    return address
one, two, pitch = device(), device(), ctypes.c_size_t(MiB)
HOST = 1
def reads(what, byte, size=MiB):
    content = ctypes.create_string_buffer(size)
    must("cuMemcpyDtoH_v2", content, two, ctypes.c_size_t(size))
    say(what, content.raw == byte * size)
    must("cuMemsetD8_v2", two, 0, pitch)
host = ctypes.create_string_buffer(b"h" * MiB)
def at(buffer): return ctypes.c_uint64(ctypes.addressof(buffer))
must("cuMemcpy", two, at(host), pitch)
reads("from the host", b"h")
must("cuMemsetD8_v2", one, ord("d"), pitch)
must("cuMemcpyHtoD_v2", two, one, pitch)
reads("from device memory named as the host's", b"d")
must("cuMemcpyDtoH_v2", two, one, ctypes.c_size_t(16))
reads("into device memory named as the host's", b"d", size=16)
must("cuMemcpyDtoHAsync_v2", two, one, pitch, None)
reads("into it with a stream", b"d")
plane = lambda address: [0, 0, HOST, address.value, 0, 0, 1024]
must("cuMemcpy2D_v2", (ctypes.c_uint64 * 16)(*plane(one), *plane(two), 1024, 1024))
reads("a plane", b"d")
must("cuMemcpy", at(host), one, pitch)
say("to the host", host.raw[:MiB] == b"d" * MiB)
`;
  const command = [...wrapper, ...cudaProgram(program)];
  const { client, connection } = await scene.connect(command);
  scene.startWorker(connection, []);
  expect(await linesOf(client, 6)).toEqual([
    'from the host True',
    "from device memory named as the host's True",
    "into device memory named as the host's True",
    'into it with a stream True',
    'a plane True',
    'to the host True',
  ]);
});

test('a kernel may have a long name, and a name beyond the limit is an error', async () => {
  const name = 'k'.repeat(20_000);
  const text = `.version 7.0\n.target sm_70\n.address_size 64\n.visible .entry ${name}() { ret; \
}\n`;
  const program = `
start()
module, function = ctypes.c_void_p(), ctypes.c_void_p()
must("cuModuleLoadData", ctypes.byref(module), ${JSON.stringify(text)}.encode())
must("cuModuleGetFunction", ctypes.byref(function), module, b"k" * 20000)
must("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
say(result("cuCtxSynchronize"), result("cuModuleGetFunction", ctypes.byref(function), module, \
b"k" * 100000), alloc(1))
`;
  const { client, connection } = await scene.connect(cudaProgram(program));
  scene.startWorker(connection, []);
  expect(await lineOf(client)).toBe('0 500 0');
});

test('--max-threads: a program with more threads ends, with the reason in the report', async () => {
  const program = `
import threading
start()
barrier = threading.Barrier(4)
def use():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    barrier.wait()
threads = [threading.Thread(target=use) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
say(alloc(1))
`;
  const { client, connection } = await scene.connect(cudaProgram(program));
  const worker = scene.startWorker(connection, ['--max-threads', '3']);
  const exited = once(worker, 'exit');
  expect(await outputOf(client)).toBe('46\n'); // CUDA_ERROR_DEVICE_UNAVAILABLE
  expect(await exited).toEqual([0, null]);
  const ended = { event: 'ended', reason: expect.stringContaining('more than 3 threads') };
  expect(scene.events().slice(-2)).toEqual([
    { event: 'overThreads', limit: 3 },
    expect.objectContaining(ended),
  ]);
});

test('the report of unsupported calls is bounded, and has each one once', async () => {
  // As sent by libcuda.so.1 on its connection: MessageKind::unsupported of wire/message.h.
  const program = `
import socket, struct
start()
[descriptor] = [fd for fd in range(3, 100) if \
os.path.realpath(f"/proc/self/fd/{fd}").rpartition("/")[2].startswith("socket:")]
connection = socket.socket(fileno=descriptor)
def tell(name, kind=8): connection.sendall(struct.pack("<IIQ", kind, len(name), 0) + name)
for i in range(2000): tell(b"cu%d,\\x01,cu%dx" % (i, i), 9)
for i in range(4): tell(b"\\x01" * (4 << 20))
for i in range(2000):
    tell(b"cu%d" % (i // 2))
tell(b"cu last\\n")
say(alloc(1))
connection.detach()
`;
  const { client, connection } = await scene.connect(cudaProgram(program));
  const worker = scene.startWorker(connection, []);
  const exited = once(worker, 'exit');
  expect(await outputOf(client)).toBe('0\n');
  expect(await exited).toEqual([0, null]);
  const calls = scene.events().filter(({ event }) => event === 'unsupported');
  expect(calls.map(({ call }) => call)).toEqual(Array.from({ length: 512 }, (_, i) => `cu${i}`));
  const names = scene
    .events()
    .flatMap(({ event, calls: found }) => (event === 'notFound' ? String(found).split(',') : []));
  expect(names).toEqual(Array.from({ length: 256 }, (_, i) => [`cu${i}`, `cu${i}x`]).flat());
  expect(scene.events().at(-1)).toMatchObject({ event: 'ended', reason: 'client exited' });
});

test('a worker that cannot be sandboxed serves nobody and reports why', async () => {
  // A filter that prevents further filters: seccomp() returns ENOSYS.
  const unconfined = `
import ctypes, os, struct, sys
code = ctypes.create_string_buffer(struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 317, 0x06, \
0, 0, 0x00050026, 0x06, 0, 0, 0x7fff0000))
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(code)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
`;
  const { client, connection } = await scene.connect(cudaProgram('say(result("cuInit", 0))'), {
    CUDA_LOG_FILE: 'stdout',
  });
  const { worker, simulatedDriver } = scene.installation;
  const report = openSync(scene.report, 'a');
  const started = spawn('python3', ['-c', unconfined, worker, '--driver', simulatedDriver], {
    stdio: ['ignore', 'ignore', 'inherit', connection, report],
  });
  connection.destroy();
  const said = await outputOf(client);
  expect(said).toMatch(
    /^\[.*\[nvidia-virtual\]\[E\] the GPU worker cannot be confined, so it does not serve: /m,
  );
  expect(said).toMatch(/^800$/m); // CUDA_ERROR_NOT_PERMITTED
  if (started.exitCode === null) await once(started, 'exit');
  closeSync(report);
  expect(scene.events()).toEqual([
    { event: 'refused', sentence: expect.stringContaining('cannot be confined') },
  ]);
});

test('--context-charge: a session without room is refused with the numbers', async () => {
  const limit = 600 * MIB;
  const quota = quotaFile(limit);
  const body =
    'status = result("cuInit", 0); say(status)\nif status == 0:\n  start(); say(memory()[0] ' +
    '// MiB)\nsys.stdin.readline()';
  const charge = ['--context-charge', String(400 * MIB)];
  const first = await scene.connect(cudaProgram(body));
  scene.startWorker(first.connection, [...quotaArguments(quota, limit), ...charge]);
  expect(await lineOf(first.client)).toBe('0');
  expect(await lineOf(first.client)).toBe('200');
  const second = await scene.connect(cudaProgram(body));
  const worker = scene.startWorker(second.connection, [...quotaArguments(quota, limit), ...charge]);
  expect(await lineOf(second.client)).toBe('2'); // CUDA_ERROR_OUT_OF_MEMORY
  if (worker.exitCode === null) await once(worker, 'exit');
  expect(scene.events().at(-1)).toEqual({
    event: 'refused',
    sentence: expect.stringMatching(
      /quota of 600 MiB has no room for one more session: 400 MiB are in use, and its context /,
    ),
  });
  expect(quota.readSlot(1).used).toBe(0);
  quota.close();
});

test('a worker outlives the process that started it and reads its log', async () => {
  const program = `
start()
say("ready")
sys.stdin.readline()
must("cuDeviceGetCount", ctypes.byref(ctypes.c_int()))
say(result("cuStreamQuery", ctypes.c_uint64(12345)), alloc(1))
ptx = b"nonsense\\0"
say(result("cuModuleLoadData", ctypes.byref(ctypes.c_uint64()), ptx) != 0, alloc(1))
`;
  const { client, connection } = await scene.connect(cudaProgram(program));
  // A process between the test and the worker that reads its log and is killed.
  const report = openSync(scene.report, 'a');
  const parentProgram = `
import os, subprocess, sys, time
read, write = os.pipe()
worker = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stderr=write, pass_fds=(3, 4), \
start_new_session=True)
print(worker.pid, flush=True)
time.sleep(1000)
`;
  const { worker, simulatedDriver } = scene.installation;
  const parent = spawn('python3', ['-c', parentProgram, worker, '--driver', simulatedDriver], {
    stdio: ['ignore', 'pipe', 'inherit', connection, report],
  });
  connection.destroy();
  closeSync(report);
  const pid = Number(String((await once(parent.stdout as NodeJS.ReadableStream, 'data'))[0]));
  expect(await lineOf(client)).toBe('ready');
  parent.kill('SIGKILL');
  await once(parent, 'exit');
  client.stdin.end('\n');
  expect(await outputOf(client)).toMatch(/^\d+ 0\nTrue 0\n$/);
  await until(() => !isRunning(pid));
  expect(scene.events().map(({ event }) => event)).toEqual(['started', 'ended']);
});

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

describe('a warm worker', () => {
  const PROGRAM = `
must("cuInit", 0)
flags, active = ctypes.c_uint(9), ctypes.c_int(9)
must("cuDevicePrimaryCtxGetState", 0, ctypes.byref(flags), ctypes.byref(active))
say("before", flags.value, active.value, alloc(1))
start()
must("cuDevicePrimaryCtxGetState", 0, ctypes.byref(flags), ctypes.byref(active))
say("after", flags.value, active.value, alloc(1))
must("cuDevicePrimaryCtxRelease_v2", 0)
must("cuDevicePrimaryCtxGetState", 0, ctypes.byref(flags), ctypes.byref(active))
say("released", active.value, alloc(1) != 0)
start()
say("again", alloc(1))
sys.stdin.readline()
`;
  const LINES = ['before 0 0 201', 'after 0 1 0', 'released 0 True', 'again 0'];

  function commandLine(pid: number | undefined): string[] {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  }

  function cacheDirectory(): string {
    const cache = path.join(scene.directory, 'cache');
    mkdirSync(cache, { recursive: true });
    return cache;
  }

  async function serve(
    env: NodeJS.ProcessEnv,
    command: string[] = cudaProgram(PROGRAM),
    warmArguments: string[] = [],
  ) {
    const { worker, control } = await scene.startWarm(warmArguments);
    const { client, connection } = await scene.connect(command, env);
    scene.assign(control, connection, ['--cache', cacheDirectory()]);
    const exited = once(worker, 'exit');
    const lines = await linesOf(client, LINES.length);
    const args = commandLine(worker.pid);
    const cache = readlinkSync(`/proc/${worker.pid}/fd/5`);
    client.stdin.end();
    expect(await exited).toEqual([0, null]);
    expect(scene.events().map(({ event }) => event)).toEqual(['started', 'ended']);
    expect(cache).toBe(cacheDirectory());
    return { lines, args };
  }

  test('serves the program it is given, which has no context at first', async () => {
    const { lines, args } = await serve({
      CUDA_MODULE_LOADING: 'LAZY',
      CUDA_HOME: '/usr/local/cuda',
    });
    expect(lines).toEqual(LINES);
    expect(args).toContain('--warm');
  });

  test.each([
    ['another environment', { CUDA_DEVICE_MAX_CONNECTIONS: '1' }, []],
    ['fewer GPUs', { CUDA_VISIBLE_DEVICES: '0' }, []],
    ['another memory layout', {}, ['setarch', '-L']],
    ['another GPU of the allocation', {}, [], ['--gpu', '0']],
  ])(
    're-executes for a program with %s, as the same process',
    async (_, env, wrapper, warmArguments = []) => {
      const { lines, args } = await serve(
        env,
        [...wrapper, ...cudaProgram(PROGRAM)],
        warmArguments,
      );
      expect(lines).toEqual(LINES);
      expect(args).not.toContain('--warm');
    },
  );

  test('recreates its context if the program wants other flags or resets it', async () => {
    const program = `
must("cuInit", 0)
must("cuDevicePrimaryCtxSetFlags_v2", 0, 0)
must("cuDevicePrimaryCtxSetFlags_v2", 0, 4)
start()
flags = ctypes.c_uint()
must("cuCtxGetFlags", ctypes.byref(flags))
say(flags.value & 7, alloc(1))
must("cuDevicePrimaryCtxReset_v2", 0)
start()
say(alloc(1))
must("cuDevicePrimaryCtxRelease_v2", 0)
must("cuDevicePrimaryCtxRelease_v2", 0)
say(alloc(1) != 0)
say("end")
sys.stdin.readline()
`;
    const { lines, args } = await serve({}, cudaProgram(program));
    expect(lines).toEqual(['4 0', '0', 'True', 'end']);
    expect(args).toContain('--warm');
  });

  test('a program that resets before it retains gets its own context', async () => {
    const program = `
must("cuInit", 0)
must("cuDevicePrimaryCtxReset_v2", 0)
start()
say(alloc(1))
must("cuDevicePrimaryCtxRelease_v2", 0)
say(alloc(1) != 0)
say("end")
say("end")
sys.stdin.readline()
`;
    expect((await serve({}, cudaProgram(program))).lines).toEqual(['0', 'True', 'end', 'end']);
  });

  test('ends with its control socket', async () => {
    const { worker, control } = await scene.startWarm();
    const exited = once(worker, 'exit');
    closeSync(control);
    expect(await exited).toEqual([0, null]);
  });

  test('ends with a message after an invalid assignment', async () => {
    const { worker, control } = await scene.startWarm();
    const exited = once(worker, 'exit');
    scene.addon.sendDescriptors(control, Buffer.from('--driver\0x'), [control]);
    expect(await exited).toEqual([1, null]);
    closeSync(control);
  });

  test('reports why it cannot be warm', async () => {
    const [control, theirs] = scene.addon.socketPair();
    const worker = spawn(
      scene.installation.worker,
      ['--warm', '--driver', '/nonexistent/libcuda.so'],
      {
        stdio: ['ignore', 'ignore', 'inherit', theirs, 'pipe'],
      },
    );
    closeSync(theirs);
    const [line] = await once(worker.stdio[4] as Readable, 'data');
    expect(JSON.parse(String(line))).toEqual({
      event: 'refused',
      sentence: expect.stringContaining('/nonexistent/libcuda.so'),
    });
    closeSync(control);
  });
});

describe('--uid', () => {
  const PROGRAM = 'start(); say(alloc(1)); sys.stdin.readline()';
  const asRoot = process.getuid?.() === 0 ? test : test.skip;

  function statusOf(pid: number | undefined): Record<string, string> {
    const lines = readFileSync(`/proc/${pid}/status`, 'utf8').trim().split('\n');
    return Object.fromEntries(lines.map((line) => line.split(':\t', 2)));
  }

  asRoot.each(['cold', 'warm'])(
    'a %s worker runs as that user, without capabilities, in its own directory of the cache',
    async (how) => {
      const { client, connection } = await scene.connect(cudaProgram(PROGRAM));
      const cache = path.join(scene.directory, 'cache');
      mkdirSync(cache);
      const args = ['--uid', '65534', '--cache', cache];
      let worker: ChildProcess;
      if (how === 'cold') {
        worker = scene.startWorker(connection, args);
      } else {
        const warm = await scene.startWarm();
        scene.assign(warm.control, connection, args);
        worker = warm.worker;
      }
      const exited = once(worker, 'exit');
      expect(await lineOf(client)).toBe('0');
      expect(statusOf(worker.pid)).toMatchObject({
        Uid: '65534\t65534\t65534\t65534',
        Gid: '65534\t65534\t65534\t65534',
        CapEff: '0000000000000000',
        CapPrm: '0000000000000000',
        NoNewPrivs: '1',
        Seccomp: '2',
      });
      expect(readlinkSync(`/proc/${worker.pid}/fd/5`)).toBe(cache);
      client.stdin.end();
      expect(await exited).toEqual([0, null]);
    },
  );
});

describe('memory pools', () => {
  // The pools of the simulated driver grow by 32 MiB.
  const PREAMBLE = `
start()
def allocate(size):
    address = ctypes.c_uint64()
    return result("cuMemAllocAsync", ctypes.byref(address), ctypes.c_size_t(size), None), address
def free(address): must("cuMemFreeAsync", address, None)
def wait(): must("cuCtxSynchronize")
def keep():
    pool = ctypes.c_uint64()
    must("cuDeviceGetDefaultMemPool", ctypes.byref(pool), 0)
    must("cuMemPoolSetAttribute", pool, 4, ctypes.byref(ctypes.c_uint64(2 ** 64 - 1)))
`;

  async function run(body: string, limit = 128 * MIB) {
    const quota = quotaFile(limit);
    const { client, connection } = await scene.connect(cudaProgram(PREAMBLE + body));
    const worker = scene.startWorker(connection, quotaArguments(quota, limit));
    const exited = once(worker, 'exit');
    return { quota, client, exited, used: () => quota.readSlot(0).used / MIB };
  }

  test('are charged for what they have reserved, not for what was allocated', async () => {
    const body =
      'say(allocate(MiB)[0]); sys.stdin.readline(); say(allocate(97 * MiB)[0], memory()[0] // MiB)';
    const { client, used } = await run(body);
    expect(await lineOf(client)).toBe('0');
    expect(used()).toBe(32);
    client.stdin.end('\n');
    expect(await outputOf(client)).toBe('0 0\n');
  });

  test('are charged for freed memory that they keep, until it is needed elsewhere', async () => {
    const body = `
keep()
status, address = allocate(96 * MiB)
free(address); wait()
say(status); sys.stdin.readline()
say(alloc(120 * MiB)); sys.stdin.readline()
`;
    const { client, used } = await run(body);
    expect(await lineOf(client)).toBe('0');
    expect(used()).toBe(96);
    client.stdin.write('\n');
    expect(await lineOf(client)).toBe('0');
    expect(used()).toBe(120);
    client.stdin.end();
  });

  test('are not charged after they released it, without a further call', async () => {
    const body = `
status, address = allocate(64 * MiB)
say(status); sys.stdin.readline()
free(address); wait()
say("waited"); sys.stdin.readline()
`;
    const { client, used } = await run(body);
    expect(await lineOf(client)).toBe('0');
    expect(used()).toBe(64);
    client.stdin.write('\n');
    await lineOf(client);
    await until(() => used() <= 0);
    client.stdin.end();
  });

  test('are charged after their destruction until the last of their memory is freed', async () => {
    const body = `
class Props(ctypes.Structure): _fields_ = [("allocType", ctypes.c_int), ("handleTypes", \
ctypes.c_int), ("location", ctypes.c_int * 2), ("rest", ctypes.c_byte * 72)]
props, pool, address = Props(allocType=1, location=(1, 0)), ctypes.c_uint64(), ctypes.c_uint64()
must("cuMemPoolCreate", ctypes.byref(pool), ctypes.byref(props))
must("cuMemAllocFromPoolAsync", ctypes.byref(address), ctypes.c_size_t(MiB), pool, None)
must("cuMemPoolDestroy", pool)
say("destroyed"); sys.stdin.readline()
free(address); wait()
say(alloc(128 * MiB)); sys.stdin.readline()
`;
    const { client, used } = await run(body);
    await lineOf(client);
    expect(used()).toBe(32);
    client.stdin.write('\n');
    expect(await lineOf(client)).toBe('0');
    client.stdin.end();
  });
});

test('--stream-memory: the maximum number of streams at a time is charged', async () => {
  const limit = 25 * MIB;
  const quota = quotaFile(limit);
  const body = `
start()
def create(name, *more):
    stream = ctypes.c_uint64()
    return result(name, ctypes.byref(stream), 0, *more), stream
first, stream = create("cuStreamCreate")
say(first, create("cuStreamCreateWithPriority", 0)[0], create("cuStreamCreate")[0]); \
sys.stdin.readline()
must("cuStreamDestroy_v2", stream)
say("destroyed", create("cuStreamCreate")[0], create("cuStreamCreate")[0]); sys.stdin.readline()
must("cuDevicePrimaryCtxReset_v2", 0)
say("reset"); sys.stdin.readline()
`;
  const { client, connection } = await scene.connect(cudaProgram(body));
  scene.startWorker(connection, [
    ...quotaArguments(quota, limit),
    '--stream-memory',
    String(10 * MIB),
  ]);
  expect(await lineOf(client)).toBe('0 0 2');
  expect(quota.readSlot(0).used).toBe(20 * MIB);
  client.stdin.write('\n');
  expect(await lineOf(client)).toBe('destroyed 0 2');
  expect(quota.readSlot(0).used).toBe(20 * MIB);
  client.stdin.write('\n');
  await lineOf(client);
  expect(quota.readSlot(0).used).toBe(0);
  client.stdin.end();
});

test('--context-memory: further contexts are charged until they are destroyed', async () => {
  const limit = 1000 * MIB;
  const quota = quotaFile(limit);
  const body = `
start()
def create():
    context = ctypes.c_uint64()
    return result("cuCtxCreate_v2", ctypes.byref(context), 0, 0), context
first, context = create()
say(alloc(100 * MiB), first, create()[0]); sys.stdin.readline()
must("cuCtxDestroy_v2", context)
say("destroyed"); sys.stdin.readline()
`;
  const { client, connection } = await scene.connect(cudaProgram(body));
  scene.startWorker(connection, [
    ...quotaArguments(quota, limit),
    '--context-memory',
    String(500 * MIB),
  ]);
  expect(await lineOf(client)).toBe('0 0 2');
  expect(quota.readSlot(0).used).toBe(600 * MIB);
  client.stdin.write('\n');
  await lineOf(client);
  expect(quota.readSlot(0).used).toBe(0);
  client.stdin.end();
});

describe('device memory that is not requested by size', () => {
  async function run(body: string, limit: number) {
    const quota = quotaFile(limit);
    const { client, connection } = await scene.connect(cudaProgram(body));
    scene.startWorker(connection, quotaArguments(quota, limit));
    return { client, used: () => quota.readSlot(0).used };
  }

  test('allocations are charged by whole pages', async () => {
    const body =
      'start(); say(alloc(1), alloc(513), alloc(MiB + 1), alloc(2 * MiB)); sys.stdin.readline()';
    const { client, used } = await run(body, 64 * MIB);
    expect(await lineOf(client)).toBe('0 0 0 0');
    expect(used()).toBe(512 + 1024 + 2 * MIB + 2 * MIB);
    client.stdin.end();
  });

  // Also 2048 threads on each of the 132 multiprocessors of the simulated GPU.
  const RESIDENT = 2048 * 132;
  const KERNELS = `
start()
def launch(local, load):
    ptx = (".version 7.0\\n.target sm_50\\n.address_size 64\\n.visible .entry k() { .local .b8 \
b[%d]; .reg .b64 %%rd<2>; mov.u64 %%rd1, b; st.local.u32 [%%rd1], 1; ret; }\\0" % local).encode()
    function = load(ptx)
    return result("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, None, None) or \
result("cuCtxSynchronize")
def fromModule(ptx):
    module, function = ctypes.c_uint64(), ctypes.c_uint64()
    must("cuModuleLoadData", ctypes.byref(module), ptx)
    must("cuModuleGetFunction", ctypes.byref(function), module, b"k")
    return function
def fromLibrary(ptx):
    library, kernel = ctypes.c_uint64(), ctypes.c_uint64()
    must("cuLibraryLoadData", ctypes.byref(library), ptx, None, None, 0, None, None, 0)
    must("cuLibraryGetKernel", ctypes.byref(kernel), library, b"k")
    return kernel
`;

  /** The driver allocates in pages of 2 MiB. */
  const inPages = (bytes: number) => Math.ceil(bytes / (2 * MIB)) * 2 * MIB;

  test('local memory of kernels is charged as long as the context keeps it', async () => {
    const body = `${KERNELS}
say(launch(512, fromModule), launch(5008, fromModule), launch(5008, fromLibrary), launch(4000, \
fromModule)); sys.stdin.readline()
say(launch(12000, fromModule), launch(12000, fromLibrary)); sys.stdin.readline()
must("cuDevicePrimaryCtxReset_v2", 0); say("reset"); sys.stdin.readline()
`;
    const { client, used } = await run(body, 2048 * MIB);
    expect(await lineOf(client)).toBe('0 0 0 0');
    expect(used()).toBe(inPages((5008 - 1024) * RESIDENT));
    client.stdin.write('\n');
    expect(await lineOf(client)).toBe('2 2');
    expect(used()).toBe(inPages((5008 - 1024) * RESIDENT));
    client.stdin.write('\n');
    await lineOf(client);
    expect(used()).toBe(0);
    client.stdin.end();
  });

  test('the stack limit is charged in the same way', async () => {
    const body =
      'start(); limit = lambda n: result("cuCtxSetLimit", 0, ctypes.c_size_t(n)); ' +
      'say(limit(2048), limit(65536)); sys.stdin.readline()';
    const { client, used } = await run(body, 1024 * MIB);
    expect(await lineOf(client)).toBe('0 2');
    expect(used()).toBe(1024 * RESIDENT);
    client.stdin.end();
  });
});
