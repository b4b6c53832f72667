import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { locateInstallation } from '../host/installation.js';
import type { GpuNode, NodeOptions } from '../node.js';
import { clientEnvironment } from '../run/run.js';
import { allBegun } from '../testing/begun.js';
import { cudaProgram } from '../testing/cuda-program.js';
import { startNode } from '../testing/node-under-test.js';
import type { Allocation } from './allocation.js';

const MiB = 2 ** 20;
/** Makes a call for each line, and says the result. */
const CALLING =
  'start(); say("ready")\nfor line in sys.stdin: say("called", alloc(MiB))\nsay("end", alloc(MiB))';
/** A host function that never returns holds the default stream. */
const ENDLESS = `
start()
block = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: time.sleep(10000))
must("cuLaunchHostFunc", None, block, None)
say("ready")
for line in sys.stdin: say("called", alloc(MiB))`;

let directory: string;
let node: GpuNode;
let programs: Program[];

class Program {
  readonly process: ChildProcessWithoutNullStreams;
  output = '';
  readonly #allocation: Allocation;

  constructor(allocation: Allocation, body: string) {
    this.#allocation = allocation;
    const [program, ...args] = cudaProgram(body);
    this.process = spawn(program as string, args, {
      env: clientEnvironment(locateInstallation(), allocation.socketPath),
    });
    this.process.stdout.on('data', (data) => {
      this.output += data;
    });
    programs.push(this);
  }

  call(): void {
    this.process.stdin.write('\n');
  }

  async says(text: string): Promise<void> {
    await until(() => this.output === text);
    await allBegun(this.#allocation);
  }
}

beforeEach(async () => {
  programs = [];
  directory = makePrivateDirectory();
  await restart();
});
afterEach(async () => {
  for (const { process } of programs) process.kill('SIGKILL');
  for (const allocation of node.allocations) await node.delete(allocation, { force: true });
  await node.close();
  removePrivateDirectory(directory);
});

async function restart(options: Partial<NodeOptions> = {}): Promise<void> {
  ({ node } = await startNode(path.join(directory, 'state'), options));
}

function saved(allocation: Allocation): unknown {
  return JSON.parse(readFileSync(path.join(allocation.directory, 'allocation.json'), 'utf8'))
    .suspended;
}

/** A program of a suspended allocation, whose next call waits. */
async function suspendedProgram(): Promise<[Allocation, Program]> {
  const allocation = await node.create({ memory: 100 * MiB });
  const program = new Program(allocation, CALLING);
  await program.says('ready\n');
  await node.suspend(allocation);
  program.call();
  return [allocation, program];
}

test('calls of all programs wait while their allocation is suspended', async () => {
  const allocation = await node.create({ memory: 100 * MiB });
  const other = new Program(await node.create({ memory: 100 * MiB }), CALLING);
  const both = [new Program(allocation, CALLING), new Program(allocation, CALLING)];
  for (const program of [other, ...both]) await program.says('ready\n');
  await node.suspend(allocation);
  await node.suspend(allocation);
  expect(saved(allocation)).toBe(true);
  expect(allocation.state).toBe('out');
  for (const program of [...both, other]) program.call();
  await other.says('ready\ncalled 0\n');
  for (const program of both) expect(program.output).toBe('ready\n');
  expect(allocation.memoryUsed).toBe(0);

  await node.resume(allocation);
  expect(allocation.state).toBe('resident');
  expect(saved(allocation)).toBeUndefined();
  for (const program of both) await program.says('ready\ncalled 0\n');
});

test('a program that starts while its allocation is suspended waits', async () => {
  const [allocation, first] = await suspendedProgram();
  const second = new Program(allocation, CALLING);
  await until(() => allocation.sessionCount === 2);
  expect(allocation.sessions).toHaveLength(1);
  await node.resume(allocation);
  await first.says('ready\ncalled 0\n');
  await second.says('ready\n');
});

test('a program waits in cuInit while gpu-proxy is replaced again and again', async () => {
  const [{ id }, first] = await suspendedProgram();
  const second = new Program(node.find(id), CALLING);
  for (let times = 0; times < 4; times++) {
    await until(() => node.find(id).sessionCount === 2);
    node.leave();
    await restart();
  }
  await node.resume(node.find(id));
  await first.says('ready\ncalled 0\n');
  await second.says('ready\n');
});

test('beside work that does not end, all programs go on', async () => {
  const allocation = await node.create({ memory: 100 * MiB });
  const endless = new Program(allocation, ENDLESS);
  const other = new Program(allocation, CALLING);
  for (const program of [endless, other]) await program.says('ready\n');
  await expect(node.suspend(allocation)).rejects.toMatchObject({
    code: 'WORK_STILL_RUNNING',
    message: expect.stringMatching(
      `process ${endless.process.pid} \\(.*\\) cannot stop now: its work on the GPU does not end`,
    ),
  });
  expect(saved(allocation)).toBeUndefined();
  for (const program of [endless, other]) program.call();
  for (const program of [endless, other]) await program.says('ready\ncalled 0\n');
});

test('sessions stay suspended while gpu-proxy is replaced', async () => {
  const [{ id }, program] = await suspendedProgram();
  node.leave();
  await restart();
  expect(node.find(id).specification.suspended).toBe(true);
  expect(program.output).toBe('ready\n');
  await node.resume(node.find(id));
  await program.says('ready\ncalled 0\n');
});

test('sessions go on after a gpu-proxy that was killed while it suspended them', async () => {
  const allocation = await node.create({ memory: 100 * MiB });
  const program = new Program(allocation, CALLING);
  await program.says('ready\n');
  for (const session of allocation.sessions) await session.command('suspend 5000', 5000);
  program.call();
  node.leave();
  expect(program.output).toBe('ready\n');
  await restart();
  await program.says('ready\ncalled 0\n');
});

test('a session that begins beside a suspension is resumed with the others', async () => {
  const allocation = await node.create({ memory: 100 * MiB });
  const program = new Program(allocation, CALLING);
  await until(() => allocation.sessions.length === 1);
  await node.suspend(allocation); // before or after its hello
  await until(() => allocation.sessions[0]?.session.introduced === true);
  program.call();
  await node.resume(allocation);
  await program.says('ready\ncalled 0\n');
});

test('a client or worker that dies while suspended ends its session only', async () => {
  const [allocation, program] = await suspendedProgram();
  await node.resume(allocation);
  const others = [new Program(allocation, CALLING), new Program(allocation, CALLING)];
  for (const other of others) await other.says('ready\n');
  await program.says('ready\ncalled 0\n');
  await node.suspend(allocation);
  others[0]?.process.kill('SIGKILL');
  await until(() => allocation.sessions.length === 2);
  const worker = allocation.sessions.find(
    ({ session }) => session.record.client.pid === others[1]?.process.pid,
  );
  process.kill(worker?.workerPid as number, 'SIGKILL');
  await until(() => allocation.sessions.length === 1);
  program.call();
  await node.resume(allocation);
  await program.says('ready\ncalled 0\ncalled 0\n');
});

test('a warm worker is suspended too', async () => {
  const allocation = await node.create({ memory: 100 * MiB });
  node.settings = { ...node.settings, warmWorkers: () => 1 };
  await until(() => node.left(node.gpus[0] as (typeof node.gpus)[0]).warmWorkersReady === 1);
  const program = new Program(allocation, CALLING);
  await program.says('ready\n');
  expect(allocation.sessions.map(({ workerStart }) => workerStart)).toEqual(['warm']);
  await node.suspend(allocation);
  program.call();
  await node.resume(allocation);
  await program.says('ready\ncalled 0\n');
});

test('a suspended allocation is deleted by force', async () => {
  const [allocation, program] = await suspendedProgram();
  await node.delete(allocation, { force: true });
  await until(() => program.output.includes('called 46'));
  await expect(node.resume(allocation)).rejects.toMatchObject({ code: 'ALLOCATION_UNKNOWN' });
});
