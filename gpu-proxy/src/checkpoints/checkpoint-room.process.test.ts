import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
} from 'node:fs';
import path from 'node:path';
import type { GpuRecord } from '@nvidia-virtual/ledger';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import type { Allocation } from '../allocations/allocation.js';
import type { Backend } from '../gpus/backend.js';
import { locateInstallation } from '../host/installation.js';
import type { GpuNode } from '../node.js';
import { allBegun } from '../testing/begun.js';
import { withCriuInRoom } from '../testing/criu.js';
import { MovingProgram } from '../testing/moving-program.js';
import { launcherWithRooms, startNode } from '../testing/node-under-test.js';

const MiB = 2 ** 20;
const FIRST_UID = 20_100;
/** Those of this process, in the place of the host's. */
const HERE = { mounts: '/proc/self/ns/mnt', cgroups: '/proc/self/ns/cgroup', root: '/' };

let directory: string;
let node: GpuNode;
let program: MovingProgram | undefined;

beforeEach(async () => {
  directory = makePrivateDirectory();
  chmodSync(directory, 0o755);
  await startNodeWithRooms();
});
afterEach(async () => {
  program?.kill();
  for (const allocation of node.allocations) await node.delete(allocation, { force: true });
  await node.close();
  removePrivateDirectory(directory);
});

/** Links to the driver's libraries in another directory, as some machines have them. */
function linkDriver(): string {
  const real = realpathSync(locateInstallation().simulatedDriver);
  const links = path.join(directory, 'driver');
  mkdirSync(links);
  for (const name of readdirSync(path.dirname(real)).filter((each) => each.includes('.so')))
    symlinkSync(path.join(path.dirname(real), name), path.join(links, name));
  return path.join(links, path.basename(real));
}

/** Workers have rooms, and gpu-proxy has groups, as in Kubernetes. */
async function startNodeWithRooms(): Promise<void> {
  if (process.getuid?.() === 0) process.setgroups?.([0, 4]);
  const state = path.join(directory, 'state');
  const users = { first: FIRST_UID, last: FIRST_UID + 9 };
  const settings = { hostMemory: 1024 * MiB, users };
  const driver = linkDriver();
  const simulatedState = path.join(state, 'simulated-gpus');
  const backend: Backend = { kind: 'simulated', driver, simulatedState };
  const launcher = launcherWithRooms(state, HERE, driver);
  ({ node } = await startNode(state, { settings, launcher, backend }));
}

async function start(allocation: Allocation): Promise<MovingProgram> {
  const started = await MovingProgram.start(allocation.socketPath, 8 * MiB);
  await allBegun(allocation);
  return started;
}

withCriuInRoom('a program whose worker has a room goes on from a file', async () => {
  const allocation = await node.create({ gpus: ['0'], memory: 256 * MiB });
  program = await start(allocation);
  const seen = await program.check();
  const worker = () => allocation.sessions[0]?.workerPid as number;
  const room = () => {
    const at = (name: string) => `/proc/${worker()}/${name}`;
    const status = readFileSync(at('status'), 'utf8');
    const lines = /^(Uid|Gid|Groups|Cap(Inh|Prm|Eff|Amb)|NoNewPrivs|Seccomp):.*$/gm;
    return {
      rights: status.match(lines),
      root: readdirSync(at('root')).filter((name) => name !== 'run'), // CRIU's
      mounts: readFileSync(at('mounts'), 'utf8')
        .split('\n')
        .map((line) => line.split(' ')[1]),
      limits: readFileSync(at('limits'), 'utf8'),
      isApart: readlinkSync(at('ns/mnt')) !== readlinkSync('/proc/self/ns/mnt'),
    };
  };
  const before = room();
  const { uid } = allocation.specification;
  expect(uid).toBeGreaterThanOrEqual(FIRST_UID);
  expect(before.rights).toContain(`Uid:\t${uid}\t${uid}\t${uid}\t${uid}`);
  const files = path.join(directory, 'state', 'checkpoints', 'files');
  for (let time = 0; time < 2; time++) {
    program.ask();
    await node.checkpoint(allocation, files);
    await node.restore(allocation);
    expect(await program.right()).toBe(seen);
    expect(room()).toEqual(before);
  }
});

withCriuInRoom('also if the worker had a context before it had its user', async () => {
  node.settings = { ...node.settings, warmWorkers: () => 1 };
  const gpu = node.gpus[0] as GpuRecord;
  await until(() => node.left(gpu).warmWorkersReady === 1);
  const allocation = await node.create({ gpus: ['0'], memory: 256 * MiB });
  program = await start(allocation);
  const seen = await program.check();
  program.ask();
  await node.checkpoint(allocation, path.join(directory, 'state', 'checkpoints', 'files'));
  await node.restore(allocation);
  expect(await program.right()).toBe(seen);
});
