import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { locateInstallation } from './installation.js';
import type { GpuNode } from './node.js';
import { makePrivateDirectory, removePrivateDirectory } from './private-directory.js';
import { identifyProcess } from './process-table.js';
import { clientEnvironment } from './run.js';
import { cudaProgram } from './testing/cuda-program.js';
import { type LogLine, startNode } from './testing/node-under-test.js';

const MiB = 2 ** 20;

let directory: string;
let node: GpuNode;
let log: LogLine[];

beforeEach(async () => {
  directory = makePrivateDirectory();
  ({ node, log } = await startNode(path.join(directory, 'state')));
});
afterEach(async () => {
  await node.close();
  removePrivateDirectory(directory);
});

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(10);
}

function said(): string[] {
  return log.map(({ msg }) => String(msg));
}

test('an allocation whose holder ends while nothing can be written goes with it all the same', async () => {
  const holder = spawn('sleep', ['1000']);
  const allocation = await node.create({ memory: MiB, holder: identifyProcess(holder.pid as number) });
  // In the way of the specification that says that it is drained.
  mkdirSync(path.join(allocation.directory, '.new-allocation.json'));
  holder.kill();
  await until(() => node.allocations.length === 0);
  expect(said()).toContainEqual(
    expect.stringMatching(/whose holder ended, could not be written down: illegal operation on a directory\.$/),
  );
});

test('an allocation whose directory somebody removed is drained without an error', async () => {
  const allocation = await node.create({ memory: MiB });
  const drained = once(node, 'changed');
  node.drain(allocation);
  rmSync(allocation.directory, { recursive: true });
  await drained;
  await until(() => node.allocations.length === 0);
});

test('a session whose files somebody removed ends as others do, with what its figures said last', async () => {
  const allocation = await node.create({ memory: 100 * MiB });
  const [file, ...args] = cudaProgram(`
start()
address = ctypes.c_uint64()
must("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(MiB))
must("cuMemcpyHtoD_v2", address, ctypes.create_string_buffer(MiB), ctypes.c_size_t(MiB))
say("ready"); sys.stdin.readline()`);
  const program = spawn(file as string, args, { env: clientEnvironment(locateInstallation(), allocation.socketPath) });
  await once(program.stdout, 'data');
  const [live] = allocation.sessions;
  await until(() => live?.use.bytesCopied.hostToDevice === MiB);
  rmSync(path.join(allocation.directory, 'sessions', '1'), { recursive: true });
  expect(live?.use.bytesCopied.hostToDevice).toBe(MiB);
  const ended = once(node, 'sessionEnded');
  program.stdin.write('\n');
  expect(await ended).toEqual([expect.objectContaining({ use: expect.objectContaining({ bytesCopied: live?.use.bytesCopied }) })]);
  await allocation.whenIdle();
  expect(said().filter((one) => one.startsWith('The figures of the session cannot be read any more'))).toHaveLength(1);
  await node.delete(allocation, { force: false });
});
