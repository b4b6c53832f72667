import { spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import path from 'node:path';
import { CommandUnderTest, gpuProxy, Place } from './testing/command-under-test.js';
import { cudaProgram } from './testing/cuda-program.js';

let place: Place;
let socket: string;
let server: CommandUnderTest;

beforeEach(async () => {
  place = new Place();
  socket = path.join(place.directory, 'gpu.sock');
  server = new CommandUnderTest(place, [
    'serve',
    '--backend',
    'simulated',
    '--memory',
    '256MiB',
    '--socket',
    socket,
  ]);
  await server.printed('"msg":"serving"');
});
afterEach(() => {
  server.process.kill('SIGKILL');
  place.remove();
});

function runThere(body: string): CommandUnderTest {
  return new CommandUnderTest(place, ['run', '--socket', socket, '--', ...cudaProgram(body)]);
}

function logLines(): Record<string, unknown>[] {
  return server.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

test('several programs at a time have one worker each and share one account', async () => {
  const holding = 'start(); say("got", alloc(150 * MiB)); sys.stdin.read()';
  const first = runThere(holding);
  await first.printed('got 0');
  const second = runThere(holding);
  await second.printed('got 2');
  expect(server.workers()).toHaveLength(2);
  for (const program of [first, second]) program.process.stdin.end();
  expect((await first.end()).status).toBe(0);
  expect((await second.end()).status).toBe(0);

  server.process.kill('SIGTERM');
  expect((await server.end()).status).toBe(0);
  const sessions = logLines().filter((line) => line['msg'] === 'session');
  expect(sessions).toHaveLength(2);
  for (const session of sessions) {
    const who = {
      uid: process.getuid?.(),
      backend: 'simulated',
      gpu: 'Simulated GPU',
      launches: 0,
      program: expect.stringContaining('python3'),
    };
    expect(session).toMatchObject({
      ...who,
      seconds: expect.any(Number),
      ended: expect.any(String),
    });
  }
  expect(sessions.map((session) => session['peakMemory']).sort()).toEqual([0, 150 * 2 ** 20]);
  expect(place.leftovers()).toEqual([]);
});

(process.getuid?.() === 0 ? test : test.skip)('another user of the machine cannot connect', () => {
  chmodSync(place.directory, 0o711);
  const connect = (become: string) => {
    const script = `import os, socket, sys; ${become}
socket.socket(socket.AF_UNIX).connect(sys.argv[1])`;
    return spawnSync('python3', ['-c', script, socket], { encoding: 'utf8' });
  };
  const other = connect('os.setgroups([]); os.setgid(65534); os.setuid(65534); ');
  expect([other.status, other.stderr]).toEqual([1, expect.stringContaining('PermissionError')]);
  expect(connect('').status).toBe(0);
});

test('a program that causes a worker message with every call does not fill the log', async () => {
  const image = '.version 8.0\\n.target sm_50\\n.address_size 64\\nnonsense\\n';
  const program = runThere(`
start()
for count in range(300): say(result("cuModuleLoadData", ctypes.byref(ctypes.c_void_p()), \
b"${image}"))`);
  const { status, stdout } = await program.end();
  expect(status).toBe(0);
  expect(stdout.match(/^[1-9]\d*$/gm)).toHaveLength(300);
  server.process.kill('SIGTERM');
  await server.end();
  const warnings = logLines().filter(({ level, session }) => level === 40 && session !== undefined);
  expect(warnings).toHaveLength(100);
  expect(logLines()).toContainEqual(
    expect.objectContaining({
      lines: expect.any(Number),
      msg: expect.stringContaining('were not logged'),
    }),
  );
});

test('the first SIGTERM lets programs finish and refuses new ones', async () => {
  const program = runThere('start(); say("ready"); sys.stdin.read(); say("result", alloc(MiB))');
  await program.printed('ready');
  server.process.kill('SIGTERM');
  await server.printed('"msg":"ending');
  const late = await gpuProxy(place, 'run', '--socket', socket, '--', 'true');
  expect([late.status, late.stderr]).toEqual([
    125,
    expect.stringContaining(`No gpu-proxy serves ${socket}`),
  ]);
  program.process.stdin.end();
  expect((await program.end()).stdout).toContain('result 0');
  expect((await server.end()).status).toBe(0);
  expect(place.leftovers()).toEqual([]);
});

test('the second SIGTERM ends the sessions, whose programs get an error', async () => {
  const program = runThere('start(); say("ready"); sys.stdin.read(); say("result", alloc(MiB))');
  await program.printed('ready');
  server.process.kill('SIGTERM');
  await server.printed('"msg":"ending');
  server.process.kill('SIGTERM');
  expect((await server.end()).status).toBe(0);
  expect(place.leftovers()).toEqual([]);
  program.process.stdin.end();
  expect((await program.end()).stdout).toContain('result 46');
});

test('a served socket is not replaced', async () => {
  const outcome = await gpuProxy(place, 'serve', '--socket', socket);
  expect([outcome.status, outcome.stderr]).toEqual([
    125,
    expect.stringContaining(`Another gpu-proxy already serves ${socket}`),
  ]);
});

test('the stale socket of a killed gpu-proxy is replaced', async () => {
  server.process.kill('SIGKILL');
  await server.end();
  server = new CommandUnderTest(place, ['serve', '--backend', 'simulated', '--socket', socket]);
  await server.printed('"msg":"serving"');
  expect((await runThere('start(); say("result", alloc(MiB))').end()).stdout).toBe('result 0\n');
});

test('options of the server cannot be set by run', async () => {
  const outcome = await gpuProxy(
    place,
    'run',
    '--socket',
    socket,
    '--memory',
    '1MiB',
    '--',
    'true',
  );
  expect([outcome.status, outcome.stderr]).toEqual([
    2,
    expect.stringContaining('--memory cannot be combined with --socket'),
  ]);
});

test.each(['throw error', 'Promise.reject(error)'])(
  'an uncaught %s ends it with its stack in the log',
  async (fault) => {
    server.process.kill('SIGKILL');
    await server.end();
    const hook = `process.once("SIGUSR2", () => {
      const error = new Error("a fault"); ${fault}; });`;
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` };
    server = new CommandUnderTest(
      place,
      ['serve', '--backend', 'simulated', '--socket', socket],
      env,
    );
    await server.printed('"msg":"serving"');
    server.process.kill('SIGUSR2');
    expect((await server.end()).status).toBe(1);
    expect(logLines().at(-1)).toMatchObject({
      stack: expect.stringMatching(/^Error: a fault\n +at /),
      msg: expect.stringContaining('report it'),
    });
  },
);
