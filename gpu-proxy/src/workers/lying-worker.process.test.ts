import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import type { ProxyError } from '@nvidia-virtual/service/errors';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import type { Allocation } from '../allocations/allocation.js';
import { locateInstallation } from '../host/installation.js';
import type { GpuNode } from '../node.js';
import { clientEnvironment } from '../run/run.js';
import { makeLyingWorker } from '../testing/lying-worker.js';
import { type LogLine, startNode } from '../testing/node-under-test.js';

const MiB = 2 ** 20;
const QUOTA = 64 * MiB;
/** The quota of the neighbour does not fit beside it. */
const TAKEN = 4096 * MiB;
const NEIGHBOUR = 7000 * MiB;
const ALLOCATING = `
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
print(cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or \
cuda.cuCtxSetCurrent(context)
      or cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(${NEIGHBOUR})))
`;

let directory: string;
let node: GpuNode;
let log: LogLine[];

beforeEach(async () => {
  directory = makePrivateDirectory();
  const installation = locateInstallation();
  const worker = makeLyingWorker(directory, { quota: QUOTA, taken: TAKEN });
  ({ node, log } = await startNode(`${directory}/state`, {
    installation: { ...installation, worker },
  }));
});
afterEach(async () => {
  for (const allocation of node.allocations) await node.delete(allocation, { force: true });
  node.leave();
  removePrivateDirectory(directory);
});

/** The result of cuMemAlloc for a program of the neighbour that allocates its whole quota. */
async function allocate({ socketPath }: Allocation): Promise<string> {
  const env = clientEnvironment(locateInstallation(), socketPath);
  const program: ChildProcess = spawn('python3', ['-c', ALLOCATING], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = (await once(program.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  await once(program, 'exit');
  return said.toString().trim();
}

test('a worker that does not charge is killed; its neighbour has its quota', async () => {
  const [liar, neighbour] = [
    await node.create({ memory: QUOTA }),
    await node.create({ memory: NEIGHBOUR }),
  ];
  const told: ProxyError[] = [];
  node.on('trouble', (_, error) => told.push(error));
  const beyond = once(node, 'beyondQuota');
  const program = createConnection(liar.socketPath);
  program.on('error', () => {});
  const [specification] = await beyond;
  expect(specification).toMatchObject({ id: liar.id });
  expect(liar.sessions.map(({ use }) => use.memory)).toEqual([0]);
  await liar.whenIdle();
  program.destroy();
  expect(await allocate(neighbour)).toBe('0');
  expect(told.map(({ code }) => code)).toEqual(['MEMORY_BEYOND_QUOTA']);
  expect(told[0]?.message).toContain('held 4 GiB');
  expect(log).toContainEqual(
    expect.objectContaining({ level: 50, allocation: liar.id, msg: told[0]?.message }),
  );
});

test('a worker that keeps its memory when it is suspended is killed', async () => {
  writeFileSync(`${directory}/lie`, `${NEIGHBOUR} ${TAKEN}`);
  const liar = await node.create({ memory: NEIGHBOUR });
  const told: ProxyError[] = [];
  node.on('trouble', (_, error) => told.push(error));
  const program = createConnection(liar.socketPath);
  program.on('error', () => {});
  await until(() => liar.sessions.length === 1);
  const beyond = once(node, 'beyondQuota');
  await node.suspend(liar);
  await beyond;
  await liar.whenIdle();
  program.destroy();
  expect(told.map(({ code }) => code)).toEqual(['MEMORY_KEPT']);
  expect(told[0]?.message).toContain('It is suspended, and of its memory 0 bytes have not left');
});

test('until then, its memory is missing for its neighbour, as on hardware', async () => {
  const [liar, neighbour] = [
    await node.create({ memory: QUOTA }),
    await node.create({ memory: NEIGHBOUR }),
  ];
  // Without the second check.
  node.leave();
  ({ node } = await startNode(`${directory}/state`, {
    installation: { ...locateInstallation(), worker: `${directory}/nvidia-virtual-worker` },
    gpus: [],
  }));
  const [again, other] = [node.find(liar.id), node.find(neighbour.id)];
  const program = createConnection(again.socketPath);
  program.on('error', () => {});
  let answer = '0';
  while (answer === '0') answer = await allocate(other);
  expect(answer).toBe('2');
  again.kill();
  await again.whenIdle();
  program.destroy();
  expect(await allocate(other)).toBe('0');
});
