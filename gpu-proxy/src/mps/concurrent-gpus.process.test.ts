import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { GpuRecord } from '@nvidia-virtual/ledger';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { isAlive, type ProcessIdentity } from '@nvidia-virtual/service/process-table';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import type { Allocation } from '../allocations/allocation.js';
import { takeInventory } from '../gpus/inventory.js';
import { locateInstallation } from '../host/installation.js';
import { DIRECT } from '../host/launcher.js';
import type { GpuNode, NodeOptions } from '../node.js';
import { clientEnvironment } from '../run/run.js';
import { makeMpsStandIn } from '../testing/mps-stand-in.js';
import { type LogLine, startNode } from '../testing/node-under-test.js';
import { RunningProgram } from '../testing/running-program.js';
import { MpsControl } from './control.js';

const MiB = 2 ** 20;
const HOLDING = 'start(); say("got", alloc(MiB)); sys.stdin.readline()';
const installation = locateInstallation();
/** The simulated GPU, treated as a real one. */
const backend = { kind: 'real', driver: installation.simulatedDriver } as const;
const { PATH } = process.env;
const asRoot = process.getuid?.() === 0 ? test : test.skip;

let directory: string;
let executable: string;
let gpus: GpuRecord[];
let node: GpuNode;
let log: LogLine[];
let programs: RunningProgram[];

beforeEach(async () => {
  programs = [];
  directory = makePrivateDirectory();
  executable = makeMpsStandIn(path.join(directory, 'bin'));
  process.env['PATH'] = `${path.dirname(executable)}:${PATH}`;
  // The quotas leave no room for another context.
  gpus = (await takeInventory({ installation, backend, gpus: [], mode: () => 'concurrent' })).map(
    (gpu) => ({ ...gpu, contextMemory: 0 }),
  );
  await restart();
});
afterEach(async () => {
  for (const program of programs) program.kill();
  for (const allocation of node.allocations) await node.delete(allocation, { force: true });
  await node.close();
  process.env['PATH'] = PATH;
  removePrivateDirectory(directory);
});

async function restart(options: Partial<NodeOptions> = {}): Promise<void> {
  ({ node, log } = await startNode(path.join(directory, 'state'), { backend, gpus, ...options }));
}

function start(allocation: Allocation): RunningProgram {
  const program = new RunningProgram(
    HOLDING,
    clientEnvironment(installation, allocation.socketPath),
  );
  programs.push(program);
  return program;
}

/** Files and process of MPS. */
function mps(): { control: MpsControl; daemon: ProcessIdentity | undefined } {
  const parent = path.join(directory, 'state', 'mps');
  const control = new MpsControl(
    { executable, driver: backend.driver, launcher: DIRECT },
    path.join(parent, readdirSync(parent)[0] ?? ''),
    '',
  );
  return { control, daemon: control.find() };
}

/** The arguments that its worker was started with. */
function wordsOf(allocation: Allocation): string[] {
  const pid = allocation.sessions[0]?.workerPid;
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
}

test('workers use MPS: a fixed share limits threads, burst does not; no turns', async () => {
  const fixed = await node.create({
    mode: 'concurrent',
    memory: 200 * MiB,
    share: 25,
    policy: 'fixed',
  });
  const burst = await node.create({ mode: 'concurrent', memory: 100 * MiB, share: 25 });
  expect(await Promise.all([start(fixed).line(), start(burst).line()])).toEqual(['got 0', 'got 0']);
  const { pipes } = mps().control;
  expect(wordsOf(fixed).join(' ')).toContain(
    `--mps-pipes ${pipes} --mps-threads 25 --mps-memory ${200 * MiB}`,
  );
  expect(wordsOf(burst).join(' ')).toContain(
    `--mps-pipes ${pipes} --mps-threads 100 --mps-memory ${100 * MiB}`,
  );
  expect(wordsOf(fixed)).not.toContain('--arbiter');
  // The stand-in is not MPS, and the worker reports it.
  await until(() =>
    log.some(
      ({ msg, allocation }) =>
        allocation === fixed.id && String(msg).startsWith('the driver did not join MPS'),
    ),
  );
});

test('while MPS is down, starting programs wait and running ones continue', async () => {
  const allocation = await node.create({ mode: 'concurrent', memory: MiB * 10 });
  expect(await start(allocation).line()).toBe('got 0');
  chmodSync(executable, 0o644);
  process.kill((mps().daemon as ProcessIdentity).pid, 'SIGKILL');
  await until(() => node.mpsTrouble !== undefined);
  const late = start(allocation);
  await until(() => allocation.sessionCount === 2);
  expect([allocation.sessions.length, node.mpsTrouble]).toEqual([
    1,
    'The MPS control daemon of GPU 0 does not answer: it is being started.',
  ]);
  chmodSync(executable, 0o755);
  expect(await late.line()).toBe('got 0');
  expect([allocation.sessions.length, node.mpsTrouble]).toEqual([2, undefined]);
  expect(
    log.some(({ msg }) => String(msg).startsWith('The MPS control daemon of GPU 0 ended: ')),
  ).toBe(true);
});

test('MPS outlives a node with programs for the next node, else ends with it', async () => {
  const allocation = await node.create({ mode: 'concurrent', memory: MiB * 10 });
  const program = start(allocation);
  expect(await program.line()).toBe('got 0');
  const daemon = mps().daemon as ProcessIdentity;
  node.leave();
  expect(isAlive(daemon)).toBe(true);
  await restart();
  await until(() => node.mpsTrouble === undefined);
  expect(mps().daemon?.pid).toBe(daemon.pid);
  program.kill();
  await node.allocations[0]?.whenIdle();
  node.leave();
  expect(isAlive(daemon)).toBe(false);
  await restart();
});

test('after a GPU becomes exclusive, MPS ends with the last allocation that needs it', async () => {
  const { uuid } = gpus[0] as GpuRecord;
  const exclusive = gpus.map((gpu) => ({ ...gpu, mode: 'exclusive' as const }));
  const allocation = await node.create({ mode: 'concurrent', memory: MiB * 10 });
  const program = start(allocation);
  await program.line();
  const daemon = mps().daemon as ProcessIdentity;
  node.leave();
  await restart({ gpus: exclusive });
  expect([isAlive(daemon), node.allocations[0]?.specification.gpus]).toEqual([true, [uuid]]);
  program.kill();
  await node.delete(node.find(allocation.id), { force: true });
  node.leave();
  expect(isAlive(daemon)).toBe(false);
  await restart({ gpus: exclusive });
  expect(existsSync(mps().control.pipes)).toBe(false);
});

asRoot('all allocations in this mode share one user, which no other allocation has', async () => {
  node.leave();
  const users = { first: 65531, last: 65533 };
  chmodSync(directory, 0o700);
  await expect(restart({ settings: { users } })).rejects.toThrow(
    new RegExp(`cannot be used: workers run as user 65533, who may not enter ${directory}\\.`),
  );
  chmodSync(directory, 0o711);
  await restart({ settings: { users } });
  const both = [
    await node.create({ mode: 'concurrent', memory: MiB }),
    await node.create({ mode: 'concurrent', memory: MiB }),
  ];
  expect(both.map(({ specification }) => specification.uid)).toEqual([65533, 65533]);
});

test('there are no warm workers with a context, whatever the settings', () => {
  node.settings = { ...node.settings, warmWorkers: () => 2 };
  expect(node.gpus.map((gpu) => node.warmWorkers(gpu))).toEqual([0]);
});

test('without nvidia-cuda-mps-control the node does not start', async () => {
  node.leave();
  process.env['PATH'] = '/nonexistent';
  await expect(restart()).rejects.toThrow(
    /^GPU 0 cannot be in concurrent mode: nvidia-cuda-mps-control is neither in bin next to /,
  );
  process.env['PATH'] = `${path.dirname(executable)}:${PATH}`;
  await restart();
});
