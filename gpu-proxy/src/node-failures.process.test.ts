import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { jest } from '@jest/globals';
import type { SessionRecord } from '@nvidia-virtual/ledger';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { identifyProcess, isAlive } from '@nvidia-virtual/service/process-table';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import type { Allocation } from './allocations/allocation.js';
import { locateInstallation } from './host/installation.js';
import type { GpuNode } from './node.js';
import { clientEnvironment } from './run/run.js';
import type { Session } from './sessions/session.js';
import { cudaProgram } from './testing/cuda-program.js';
import { type LogLine, startNode } from './testing/node-under-test.js';

const MiB = 2 ** 20;
/** All but setTimeout() and clearTimeout(). */
const NOT_FAKED = [
  ...['Date', 'hrtime', 'nextTick', 'performance', 'queueMicrotask'],
  ...['setImmediate', 'clearImmediate', 'setInterval', 'clearInterval'],
] as const;

let directory: string;
let node: GpuNode;
let log: LogLine[];
let programs: ChildProcessWithoutNullStreams[];

beforeEach(async () => {
  programs = [];
  directory = makePrivateDirectory();
  ({ node, log } = await startNode(path.join(directory, 'state')));
});
afterEach(async () => {
  jest.useRealTimers();
  for (const program of programs) program.kill('SIGKILL');
  await node.close();
  removePrivateDirectory(directory);
});

function startProgram(allocation: Allocation, body: string): ChildProcessWithoutNullStreams {
  const [file, ...args] = cudaProgram(body);
  const program = spawn(file as string, args, {
    env: clientEnvironment(locateInstallation(), allocation.socketPath),
  });
  programs.push(program);
  return program;
}

function said(): string[] {
  return log.map(({ msg }) => String(msg));
}

test('an allocation ends with its holder even if its files cannot be written', async () => {
  const holder = spawn('sleep', ['1000']);
  const allocation = await node.create({
    memory: MiB,
    holder: identifyProcess(holder.pid as number),
  });
  // Prevents writing the specification that marks it as draining.
  mkdirSync(path.join(allocation.directory, '.new-allocation.json'));
  holder.kill();
  await until(() => node.allocations.length === 0);
  expect(said()).toContainEqual(
    expect.stringMatching(
      /The holder .* the drain could not be saved: illegal operation on a directory\.$/,
    ),
  );
});

test('an allocation whose directory was removed is drained without an error', async () => {
  const allocation = await node.create({ memory: MiB });
  const drained = once(node, 'changed');
  node.drain(allocation);
  rmSync(allocation.directory, { recursive: true });
  await drained;
  await until(() => node.allocations.length === 0);
});

test('a session whose files were removed ends normally, with its last known figures', async () => {
  const allocation = await node.create({ memory: 100 * MiB });
  const program = startProgram(
    allocation,
    `
start()
address = ctypes.c_uint64()
must("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(MiB))
must("cuMemcpyHtoD_v2", address, ctypes.create_string_buffer(MiB), ctypes.c_size_t(MiB))
say("ready"); sys.stdin.readline()`,
  );
  await once(program.stdout, 'data');
  const [live] = allocation.sessions;
  await until(() => live?.use.bytesCopied.hostToDevice === MiB);
  rmSync(path.join(allocation.directory, 'sessions', '1'), { recursive: true });
  expect(live?.use.bytesCopied.hostToDevice).toBe(MiB);
  const ended = once(node, 'sessionEnded');
  program.stdin.write('\n');
  expect(await ended).toEqual([
    expect.objectContaining({
      use: expect.objectContaining({ bytesCopied: live?.use.bytesCopied }),
    }),
  ]);
  await allocation.whenIdle();
  expect(
    said().filter((one) => one.startsWith('The figures of the session can no longer be read')),
  ).toHaveLength(1);
  await node.delete(allocation, { force: false });
});

test('a worker that hangs when its client ends is killed, and its memory is released', async () => {
  // Only these: the other clocks of the node stay real.
  jest.useFakeTimers({ doNotFake: [...NOT_FAKED] });
  const allocation = await node.create({ memory: 100 * MiB });
  const holding = 'start(); say("got", alloc(80 * MiB)); sys.stdin.readline()';
  const program = startProgram(allocation, holding);
  expect(await once(createInterface(program.stdout), 'line')).toEqual(['got 0']);
  const [{ worker, slot }] = allocation.sessions.map(({ session }) => session.record) as [
    SessionRecord,
  ];
  process.kill(worker.pid, 'SIGSTOP');
  let session: Session | undefined;
  node.once('sessionEnded', (ended: { session: Session }) => {
    session = ended.session;
  });
  program.kill('SIGKILL');
  await until(() => {
    jest.advanceTimersByTime(1000);
    return session !== undefined;
  });
  jest.useRealTimers();
  expect([session?.killed, session?.ended, isAlive(worker)]).toEqual([
    true,
    'worker died: signal SIGKILL',
    false,
  ]);
  await allocation.whenIdle();
  expect([allocation.sessionCount, allocation.memoryUsed]).toEqual([0, 0]);
  expect(said()).toContain('the worker did not end with its client and is killed');

  const next = startProgram(allocation, holding);
  expect(await once(createInterface(next.stdout), 'line')).toEqual(['got 0']);
  expect(allocation.sessions.map((one) => one.session.record.slot)).toEqual([slot]);
  next.stdin.write('\n');
  await allocation.whenIdle();
  await node.delete(allocation, { force: false });
});
