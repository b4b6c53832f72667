import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { locateInstallation } from '../host/installation.js';
import { CommandUnderTest, gpuProxy, Place } from '../testing/command-under-test.js';
import { cudaProgram } from '../testing/cuda-program.js';
import { startNode } from '../testing/node-under-test.js';
import { clientEnvironment } from './run.js';

interface TraceEvent {
  readonly ph: string;
  readonly cat?: string;
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
  readonly args: Readonly<Record<string, string | number>>;
}

/** Counts the program's calls of libcuda.so.1, and runs a kernel, copies and a memset. */
const WORK = `
import collections, json, threading
made = collections.Counter()
plain = result
def result(name, *arguments):
    made[name] += 1
    return plain(name, *arguments)
PTX = b".version 7.0\\n.target sm_50\\n.address_size 64\\n.visible .entry spin() { ret; }"
def work(bytes):
    address, host = ctypes.c_uint64(), (ctypes.c_char * bytes)()
    must("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(bytes))
    must("cuMemsetD8_v2", address, 1, ctypes.c_size_t(bytes))
    must("cuMemcpyHtoD_v2", address, host, ctypes.c_size_t(bytes))
    must("cuMemcpyDtoH_v2", host, address, ctypes.c_size_t(bytes))
def launch(times):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    must("cuModuleLoadData", ctypes.byref(module), PTX)
    must("cuModuleGetFunction", ctypes.byref(function), module, b"spin")
    for _ in range(times): must("cuLaunchKernel", function, 2, 1, 1, 32, 1, 1, 0, None, None, None)
    must("cuCtxSynchronize")
`;

let place: Place;
let file: string;

beforeEach(() => {
  place = new Place();
  file = path.join(place.directory, 'trace.json');
});
afterEach(() => place.remove());

function run(options: readonly string[], body: string): CommandUnderTest {
  const program = cudaProgram(`${WORK}\n${body}`);
  return new CommandUnderTest(place, [
    ...['run', '--backend', 'simulated', ...options, '--'],
    ...program,
  ]);
}

function readTrace(): TraceEvent[] {
  return JSON.parse(readFileSync(file, 'utf8')) as TraceEvent[];
}

function countByName(events: readonly TraceEvent[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { name } of events) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

test('--trace has every call of every thread, with arguments and result', async () => {
  const body = `
start(); work(4096); launch(3)
def other():
    context = ctypes.c_void_p()
    must("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0); must("cuCtxSetCurrent", context)
    work(100_000); result("cuMemFree_v2", ctypes.c_uint64(12345)); say(threading.get_native_id())
thread = threading.Thread(target=other); thread.start(); thread.join()
say(os.getpid()); say(json.dumps(made))`;
  const { status, stdout } = await run(['--trace', file], body).end();
  expect(status).toBe(0);
  const [other, own, made] = stdout.split('\n') as [string, string, string];
  const calls = readTrace().filter(({ cat }) => cat === 'call');
  expect(countByName(calls)).toEqual(JSON.parse(made));
  expect(new Set(calls.map(({ pid }) => pid))).toEqual(new Set([Number(own)]));
  expect(new Set(calls.map(({ tid }) => tid))).toEqual(new Set([Number(own), Number(other)]));
  const free = calls.find(({ name }) => name === 'cuMemFree_v2');
  expect([free?.tid, free?.args]).toEqual([
    Number(other),
    { return: 'CUDA_ERROR_INVALID_VALUE', dptr: '0x3039' },
  ]);
  const launch = calls.find(({ name }) => name === 'cuLaunchKernel');
  expect(launch?.args).toMatchObject({ f: expect.stringContaining(' spin'), gridDimX: '2' });
});

test('--trace has kernels by name and copies with bytes, as they ran on the GPU', async () => {
  await run(['--trace', file], 'start(); work(4096); launch(3); work(100_000)').end();
  const events = readTrace();
  const works = events.filter(({ cat }) => ['kernel', 'copy', 'memset'].includes(cat ?? ''));
  expect(countByName(works)).toEqual({
    spin: 3,
    '[memcpy HtoD]': expect.any(Number),
    '[memcpy DtoH]': expect.any(Number),
    '[memset D8]': 2,
  });
  const bytesOf = (name: string) =>
    works
      .filter((work) => work.name === name)
      .reduce((sum, { args }) => sum + Number(args['bytes']), 0);
  expect([bytesOf('[memcpy HtoD]'), bytesOf('[memcpy DtoH]')]).toEqual([104_096, 104_096]);
  // On the clock of the calls: after the launch, and before the synchronization returned.
  const call = (name: string) => events.find((event) => event.name === name) as TraceEvent;
  const end = ({ ts, dur }: TraceEvent) => ts + dur;
  expect(call('spin').ts).toBeGreaterThan(call('cuLaunchKernel').ts);
  expect(end(call('spin'))).toBeLessThan(end(call('cuCtxSynchronize')));
});

test('processes of a program write one trace, forked before or after CUDA began', async () => {
  const body = `
before = os.fork()
start(); work(64)
if before == 0: sys.exit(0)
after = os.fork()
if after == 0: result("cuCtxSynchronize"); os._exit(0)
os.waitpid(before, 0); os.waitpid(after, 0); say(os.getpid(), before, after)`;
  const { stdout } = await run(['--trace', file], body).end();
  const [parent, before, after] = stdout.trim().split(' ').map(Number);
  const calls = readTrace().filter(({ cat }) => cat === 'call');
  const of = (process?: number) => calls.filter(({ pid }) => pid === process);
  expect(countByName(of(parent))).toMatchObject({ cuInit: 1, cuMemAlloc_v2: 1 });
  expect(countByName(of(before))).toMatchObject({ cuInit: 1, cuMemAlloc_v2: 1 });
  expect(of(after).map(({ name, args }) => [name, args['return']])).toEqual([
    ['cuCtxSynchronize', 'CUDA_ERROR_NOT_INITIALIZED'],
  ]);
});

test('a killed program leaves a trace that can be read', async () => {
  const command = run(['--trace', file], 'start(); launch(1); say("ready"); time.sleep(1000)');
  await command.printed('ready');
  await until(() => readFileSync(file, 'utf8').includes('"cuCtxSynchronize"'));
  command.process.kill('SIGTERM');
  await command.end();
  expect(countByName(readTrace())).toMatchObject({ cuInit: 1, cuLaunchKernel: 1 });
});

test('a file that is not named .json gets a line for each event', async () => {
  file = path.join(place.directory, 'trace.txt');
  await run(['--trace', file], 'start(); work(4096); launch(1)').end();
  const text = readFileSync(file, 'utf8');
  expect(text).toMatch(
    /^\d+\.\d{6} \d+ thread \d+ cuInit\(Flags=0\) = CUDA_SUCCESS <\d+\.\d{6}>$/m,
  );
  expect(text).toMatch(/^\d+\.\d{6} \d+ GPU 0 stream 0x0 spin <\d+\.\d{6}>$/m);
  expect(text).toMatch(/^\d+\.\d{6} \d+ GPU 0 stream 0x0 \[memcpy HtoD\] 4096 bytes <.*>$/m);
});

test('--summary prints a table at the end, and nothing else changes', async () => {
  const { stdout, stderr } = await run(['--summary'], 'start(); launch(7); say("done")').end();
  expect(stdout).toBe('done\n');
  expect(stderr).toMatch(/^nvidia-virtual: summary of python3.* \(process \d+\)$/m);
  expect(stderr).toMatch(/^ GPU activities: +100\.00% +\S+ +7 +\S+ +\S+ +\S+ {2}spin$/m);
  expect(stderr).toMatch(/ 7 +\S+ +\S+ +\S+ {2}cuLaunchKernel$/m);
  expect(place.leftovers()).toEqual([]);
});

test('an allocation with `trace: summary` makes its programs print the table', async () => {
  const { node } = await startNode(path.join(place.directory, 'state'));
  const allocation = await node.create({ trace: 'summary' });
  const [program, ...args] = cudaProgram(`${WORK}\nstart(); launch(7)`);
  const env = clientEnvironment(locateInstallation(), allocation.socketPath);
  const child = spawn(program as string, args, { env });
  let stderr = '';
  child.stderr.on('data', (data: Buffer) => {
    stderr += data;
  });
  await once(child, 'close');
  await node.delete(allocation, { force: true });
  await node.close();
  expect(stderr).toMatch(/^ GPU activities: .* 7 .* spin$/m);
  expect(stderr).toMatch(/ 7 +\S+ +\S+ +\S+ {2}cuLaunchKernel$/m);
});

test('a trace that cannot be written is refused before the program starts', async () => {
  const options = ['run', '--trace', '/nonexistent/trace.json', '--', 'true'];
  const { status, stderr } = await gpuProxy(place, ...options);
  expect([status, stderr]).toEqual([
    125,
    'gpu-proxy: The trace /nonexistent/trace.json cannot be created: no such file or directory. ' +
      'Set another file with --trace.\n',
  ]);
});
