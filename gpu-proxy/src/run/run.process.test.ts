import { until } from '@nvidia-virtual/service/testing/eventually';
import { CommandUnderTest, gpuProxy, Place } from '../testing/command-under-test.js';
import { cudaProgram } from '../testing/cuda-program.js';

let place: Place;
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.remove());

function run(options: string[], command: string[]): CommandUnderTest {
  return new CommandUnderTest(place, [
    'run',
    '--backend',
    'simulated',
    ...options,
    '--',
    ...command,
  ]);
}

test('output and exit status are those of the program', async () => {
  const outcome = await run([], ['sh', '-c', 'echo out; echo err >&2; exit 7']).end();
  expect(outcome).toEqual({ status: 7, stdout: 'out\n', stderr: 'err\n' });
  expect(place.leftovers()).toEqual([]);
});

test('both names of the driver library are ours', async () => {
  const load = 'import ctypes; a, b = map(ctypes.CDLL, ["libcuda.so.1", "libcuda.so"])';
  const same = 'print(a._handle == b._handle)';
  expect((await run([], ['python3', '-c', `${load}; ${same}`]).end()).stdout).toBe('True\n');
});

test('standard input and arguments are passed to the program unchanged', async () => {
  const command = run([], ['sh', '-c', 'cat; printf "%s|" "$@"', 'sh', '--memory', 'a b', '']);
  command.process.stdin.end('in\n');
  expect((await command.end()).stdout).toBe('in\n--memory|a b||');
});

test('a program ended by a signal gives 128 + the signal', async () => {
  expect((await run([], ['sh', '-c', 'kill -KILL $$']).end()).status).toBe(137);
});

test('SIGTERM is passed to the program, and nothing is left behind', async () => {
  const command = run([], cudaProgram('start(); say("ready"); time.sleep(1000)'));
  await command.printed('ready');
  expect(command.workers()).toHaveLength(1);
  command.process.kill('SIGTERM');
  expect((await command.end()).status).toBe(143);
  expect(place.leftovers()).toEqual([]);
});

test('a GPU may be named by its index', async () => {
  const program = cudaProgram('start(); time.sleep(0.3); say(alloc(MiB))');
  const { status, stdout } = await run(['--gpu', '0'], program).end();
  expect([status, stdout]).toEqual([0, '0\n']);
});

test('--verbose prints where a program ran, its quota and its usage', async () => {
  const { status, stdout, stderr } = await run(
    ['--memory', '512MiB', '--verbose'],
    cudaProgram('start(); say(alloc(64 * MiB))'),
  ).end();
  expect([status, stdout]).toEqual([0, '0\n']);
  expect(stderr).toMatch(/^gpu-proxy: GPU: Simulated GPU, GPU-[0-9a-f-]{36}, /m);
  expect(stderr).toMatch(/^gpu-proxy: backend: simulated \(.*libsimulator-cuda\.so\.1\)$/m);
  expect(stderr).toContain('gpu-proxy: quota: 512 MiB\n');
  expect(stderr).toContain('gpu-proxy: peak use: 64 MiB\n');
  expect(stderr).toContain('gpu-proxy: launches: 0\n');
  expect(stderr).toMatch(
    /^gpu-proxy: sessions: 1\n.*python3.* \(process \d+\): .* s, peak 64 MiB, 0 launches, /m,
  );
});

test('without --verbose nothing is printed about a successful program', async () => {
  expect(await run([], cudaProgram('start()')).end()).toEqual({
    status: 0,
    stdout: '',
    stderr: '',
  });
});

test('--verbose lists unsupported calls, but none that its runtime only looked up', async () => {
  const ask =
    'for name in names: must("cuGetProcAddress_v2", name, ctypes.byref(ctypes.c_void_p()), ' +
    '12000, ctypes.c_uint64(0), None)';
  const body = [
    // like a CUDA runtime: an unknown name, the whole table, cuInit
    `def ask(*names):\n  ${ask}`,
    'ask(b"", b"cuInit", b"cuRuntimeOne", b"cuRuntimeTwo", b"cuMemAlloc")',
    'start()',
    'ask(b"cuOtherOne", b"cuOtherOne", b"cuRuntimeTwo", b"cuNeverHeardOf", b"no name")',
    'say(result("cuCheckpointProcessLock", 1, None)); os._exit(0)',
  ].join('\n');
  const { stdout, stderr } = await run(['--verbose'], cudaProgram(body)).end();
  expect(stdout).toBe('801\n'); // CUDA_ERROR_NOT_SUPPORTED
  expect(stderr).toContain('gpu-proxy: called and not supported: cuCheckpointProcessLock\n');
  expect(stderr).toContain('gpu-proxy: asked for and not supported: cuNeverHeardOf, cuOtherOne\n');
  expect(stderr).toContain(
    "gpu-proxy: not supported, if the program's CUDA runtime needs it: cuRuntime* (2)\n",
  );
});

test('--verbose says so if the program never called CUDA', async () => {
  expect((await run(['--verbose'], ['true']).end()).stderr).toContain(
    'gpu-proxy: true never called CUDA',
  );
  expect((await run([], ['true']).end()).stderr).toBe('');
});

/**
 * The driver version that a program sees for this CUDA version, and whether it can use the driver.
 */
async function onDriver(version: string, body: string) {
  const command = new CommandUnderTest(
    place,
    ['run', '--backend', 'simulated', '--', ...cudaProgram(body)],
    {
      NVIDIA_VIRTUAL_SIMULATED_DRIVER_VERSION: version,
    },
  );
  return command.end();
}

test('number 6: a newer or older driver works; one that is too old is reported', async () => {
  const body =
    'start(); version = ctypes.c_int(); must("cuDriverGetVersion", ctypes.byref(version)); ' +
    'say(version.value, alloc(MiB))';
  expect((await onDriver('14.2', body)).stdout).toBe('13000 0\n');
  expect((await onDriver('12.4', body)).stdout).toBe('12040 0\n');
  const refused = await onDriver('12.2', 'say(result("cuInit", 0))');
  expect(refused.stdout).toBe('803\n');
  expect(refused.stderr).toContain(
    'driver is too old: it supports CUDA 12.2, and 12.4 (driver 550) is needed; update the ' +
      'driver of the node',
  );
});

test('--memory is the memory that the program sees and its limit', async () => {
  const body =
    'start(); say(memory()[1] // MiB, alloc(96 * MiB), alloc(96 * MiB), alloc(16 * MiB))';
  expect((await run(['--memory', '128MiB'], cudaProgram(body)).end()).stdout).toBe('128 0 2 0\n');
});

test('--memory is one account for all processes of the run', async () => {
  const child = 'start(); say(alloc(96 * MiB)); sys.stdin.read()';
  const [, , script] = cudaProgram(child);
  const body = `
def spawn(): return subprocess.Popen(["python3", "-c", ${JSON.stringify(script)}], \
stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
first = spawn(); say(first.stdout.readline().strip())
second = spawn(); say(second.stdout.readline().strip())
first.kill(); first.wait()
deadline = time.time() + 60
while time.time() < deadline:
    third = spawn(); status = third.stdout.readline().strip(); third.communicate()
    if status == "0": break
say(status); second.communicate()`;
  const { stdout } = await run(['--memory', '128MiB'], cudaProgram(body)).end();
  expect(stdout.split('\n')).toEqual(['0', '2', '0', '']);
});

test('a program whose worker is killed gets an error, and nothing is left', async () => {
  const body = 'start(); say("ready"); sys.stdin.readline(); say(alloc(MiB), alloc(MiB))';
  const command = run([], cudaProgram(body));
  await command.printed('ready');
  for (const pid of command.workers()) process.kill(pid, 'SIGKILL');
  await until(() => command.workers().length === 0);
  command.process.stdin.write('\n');
  const { status, stdout, stderr } = await command.end();
  expect([status, stdout]).toEqual([0, 'ready\n46 46\n']);
  expect(stderr).toMatch(
    /^gpu-proxy: .*python3.* \(process \d+\): worker died: signal SIGKILL; its later CUDA calls /m,
  );
  expect(place.leftovers()).toEqual([]);
});

test('a killed program leaves nothing behind', async () => {
  const command = run(
    ['--verbose'],
    cudaProgram('start(); alloc(MiB); os.kill(os.getpid(), signal.SIGKILL)'),
  );
  const { status, stderr } = await command.end();
  expect(status).toBe(137);
  expect(stderr).toContain('gpu-proxy: sessions: 1\n');
  expect(command.workers()).toEqual([]);
  expect(place.leftovers()).toEqual([]);
});

test('a run lasts until no background process of the program uses the GPU', async () => {
  const [, , script] = cudaProgram(
    'start(); print("ready", file=sys.stderr, flush=True); sys.stdin.read(); say("child", ' +
      'alloc(MiB))',
  );
  const spawn =
    `child = subprocess.Popen(["python3", "-c", ` +
    `${JSON.stringify(script)}], stderr=subprocess.PIPE, ` +
    `text=True)`;
  const command = run([], cudaProgram(`${spawn}; child.stderr.readline(); say("parent ends")`));
  await command.printed('parent ends\n');
  command.process.stdin.end();
  const { status, stdout } = await command.end();
  expect([status, stdout]).toEqual([0, 'parent ends\nchild 0\n']);
});

test('programs that cannot be run give a message and the exit status of a shell', async () => {
  const missing = await gpuProxy(place, 'run', '--', 'nosuch-program');
  expect([missing.status, missing.stderr]).toEqual([
    127,
    'gpu-proxy: nosuch-program was not found in PATH. Check the name, or give a path.\n',
  ]);
  const notExecutable = await gpuProxy(place, 'run', '--', '/etc/passwd');
  expect([notExecutable.status, notExecutable.stderr]).toEqual([
    126,
    expect.stringContaining('/etc/passwd is not marked as executable'),
  ]);
});

test('wrong usage gives status 2 and the allowed values', async () => {
  const outcome = await gpuProxy(place, 'run', '--memory', '12 parsecs', '--', 'true');
  expect([outcome.status, outcome.stderr]).toEqual([
    2,
    expect.stringContaining('--memory is "12 parsecs", but must be a number'),
  ]);
  expect((await gpuProxy(place, 'run')).status).toBe(2);
  expect((await gpuProxy(place, 'walk')).status).toBe(2);
});

test('without a build, the message says how to build', async () => {
  const outcome = await new CommandUnderTest(place, ['run', '--', 'true'], {
    NVIDIA_VIRTUAL_BUILD: '/nonexistent',
  }).end();
  expect([outcome.status, outcome.stderr]).toEqual([
    125,
    expect.stringContaining('Run `npm run build` first'),
  ]);
});

test.each([['run'], ['serve'], []])('--help explains %s', async (...command) => {
  const { status, stdout } = await gpuProxy(place, ...command, '--help');
  expect(status).toBe(0);
  expect(stdout).toContain('Usage: gpu-proxy');
});
