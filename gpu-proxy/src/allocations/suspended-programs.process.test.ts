import { mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { locateInstallation } from '../host/installation.js';
import type { GpuNode, NodeOptions } from '../node.js';
import { allBegun } from '../testing/begun.js';
import { KeepingProgram } from '../testing/keeping-program.js';
import { startNode } from '../testing/node-under-test.js';
import { RunningProgram } from '../testing/running-program.js';
import type { Allocation } from './allocation.js';

const MiB = 2 ** 20;

let directory: string;
let node: GpuNode;
let programs: Pick<RunningProgram, 'kill'>[];

beforeEach(async () => {
  programs = [];
  directory = makePrivateDirectory();
  await restart();
});
afterEach(async () => {
  for (const program of programs) program.kill();
  for (const allocation of node.allocations) await node.delete(allocation, { force: true });
  await until(() => node.arenas.used === 0);
  await node.close();
  removePrivateDirectory(directory);
});

async function restart(options: Partial<NodeOptions> = {}): Promise<void> {
  ({ node } = await startNode(path.join(directory, 'state'), options));
}

/** A program that holds buffers of these sizes, whose content it knows. */
async function keep(allocation: Allocation, ...sizes: number[]): Promise<KeepingProgram> {
  const program = await KeepingProgram.start(allocation.socketPath, sizes);
  programs.push(program);
  await allBegun(allocation);
  return program;
}

/** A program without gpu-proxy on the same GPU. It prints how much is free, and allocates. */
function foreignProgram(): RunningProgram {
  const libraries = path.join(directory, 'driver');
  mkdirSync(libraries);
  symlinkSync(locateInstallation().simulatedDriver, path.join(libraries, 'libcuda.so.1'));
  const program = new RunningProgram(
    'start(); say(memory()[0])\nfor line in sys.stdin: say(alloc(int(line)))',
    {
      ...process.env,
      LD_LIBRARY_PATH: libraries,
      NVIDIA_VIRTUAL_SIMULATED_STATE: path.join(directory, 'state', 'simulated-gpus'),
    },
  );
  programs.push(program);
  return program;
}

/** GPU memory of a session's worker, by the driver. */
function reported(allocation: Allocation): number | undefined {
  const [session] = allocation.sessions;
  const [gpu] = node.gpus;
  return node.deviceReading?.get(session?.workerPid ?? 0)?.get(gpu?.uuid ?? '')?.memory;
}

test('memory of all sizes comes back with its content, again and again', async () => {
  const allocation = await node.create({ memory: 1024 * MiB });
  const program = await keep(allocation, 1, 512, 100_001, MiB, MiB + 1, 5 * MiB, 33 * MiB);
  const other = await keep(allocation, 7 * MiB);
  for (let cycle = 0; cycle < 5; cycle++) {
    await node.suspend(allocation);
    expect(allocation.outBytes).toBeGreaterThan(46 * MiB);
    for (const each of [program, other]) each.ask();
    await node.resume(allocation);
    for (const each of [program, other]) {
      await each.right();
      await each.check(3 * MiB);
    }
  }
});

test('the driver reports the memory that left as free', async () => {
  const allocation = await node.create({ memory: 1024 * MiB });
  await keep(allocation, 512 * MiB);
  const before = await until(() => reported(allocation));
  await until(() => (reported(allocation) ?? 0) >= 512 * MiB);
  await node.suspend(allocation);
  await until(() => (reported(allocation) ?? 0) < before);
  expect(allocation.memoryUsed).toBeGreaterThanOrEqual(512 * MiB);
  await node.resume(allocation);
  await until(() => (reported(allocation) ?? 0) >= 512 * MiB);
});

test('another process has the memory that left, and it comes back after that one', async () => {
  const allocation = await node.create({ memory: 1024 * MiB });
  const program = await keep(allocation, 150 * MiB, 100_000);
  const other = foreignProgram();
  const wanted = Number(await other.line()) + 80 * MiB;
  const ask = (size: number) => {
    other.tell(String(size));
    return other.line();
  };
  expect(await ask(wanted)).toBe('2');
  await node.suspend(allocation);
  expect(await ask(wanted)).toBe('0');
  program.ask();
  await expect(node.resume(allocation)).rejects.toMatchObject({
    code: 'MEMORY_NOT_BACK',
    message: expect.stringMatching(/cannot return to the GPU: the GPU has no room for 15. MiB /),
  });
  expect(allocation.state).toBe('out');
  other.kill();
  await until(() =>
    node.resume(allocation).then(
      () => true,
      () => false,
    ),
  );
  await program.right();
});

test('arenas are freed with their programs and workers, also while memory is out', async () => {
  const allocation = await node.create({ memory: 1024 * MiB });
  const [client, worker, rest] = [
    await keep(allocation, 20 * MiB),
    await keep(allocation, 30 * MiB),
    await keep(allocation, 40 * MiB),
  ];
  await node.suspend(allocation);
  expect(node.arenas.used).toBe(90 * MiB);
  client.kill();
  await until(() => node.arenas.used === 70 * MiB);
  const died = allocation.sessions.find(({ session }) => session.record.client.pid === worker.pid);
  process.kill(died?.workerPid as number, 'SIGKILL');
  await until(() => node.arenas.used === 40 * MiB);
  await node.resume(allocation);
  await rest.check();
});

test('an unused arena of a running program is given up for another one', async () => {
  node.settings = { ...node.settings, hostMemory: 50 * MiB };
  const [first, second] = [
    await node.create({ memory: 100 * MiB }),
    await node.create({ memory: 100 * MiB }),
  ];
  const [one, two] = [await keep(first, 30 * MiB), await keep(second, 40 * MiB)];
  for (const allocation of [first, second, first]) {
    await node.suspend(allocation);
    await node.resume(allocation);
  }
  await until(() => node.arenas.used === 30 * MiB);
  for (const program of [one, two]) await program.check();
});

test('memory stays out while gpu-proxy is replaced, and its arena is used again', async () => {
  const { id } = await node.create({ memory: 100 * MiB });
  const program = await keep(node.find(id), 40 * MiB);
  await node.suspend(node.find(id));
  node.leave();
  await restart();
  expect(node.find(id).outBytes).toBe(40 * MiB);
  program.ask();
  await node.resume(node.find(id));
  await program.right();
  await node.suspend(node.find(id));
  expect(node.arenas.used).toBe(40 * MiB);
  await node.resume(node.find(id));
  // It grows, so the arena is replaced. The kernel tells that the former one is freed.
  await program.check(10 * MiB);
  await node.suspend(node.find(id));
  await until(() => node.arenas.used === 50 * MiB);
  await node.resume(node.find(id));
  await program.check();
});
