import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { locateInstallation } from '../host/installation.js';
import { DIRECT, type Launcher } from '../host/launcher.js';
import type { GpuNode } from '../node.js';
import { clientEnvironment } from '../run/run.js';
import { cudaProgram } from '../testing/cuda-program.js';
import { startNode } from '../testing/node-under-test.js';
import type { XidReport } from './xids.js';

let directory: string;
let xids: string;
let node: GpuNode;
let program: ChildProcessWithoutNullStreams;

beforeEach(async () => {
  directory = makePrivateDirectory();
  xids = path.join(directory, 'xids');
  writeFileSync(xids, '0 13\n');
  const launcher: Launcher = {
    ...DIRECT,
    command: (file, args) => ['env', [`NVIDIA_VIRTUAL_SIMULATED_XIDS=${xids}`, file, ...args]],
  };
  ({ node } = await startNode(path.join(directory, 'state'), { launcher }));
});
afterEach(async () => {
  program.kill('SIGKILL');
  await node.close();
  removePrivateDirectory(directory);
});

test('Xids that occur while a program uses the GPU are reported and counted', async () => {
  const reports: XidReport[] = [];
  node.on('xid', (report) => reports.push(report));
  const allocation = await node.create({ memory: 2 ** 20 });
  const [file, ...args] = cudaProgram('start(); say("ready"); sys.stdin.readline()');
  program = spawn(file as string, args, {
    env: clientEnvironment(locateInstallation(), allocation.socketPath),
  });
  await once(program.stdout, 'data');
  // The reader registers for Xids before its first reading.
  await until(() => node.deviceReading !== undefined);
  appendFileSync(xids, '0 79\n0 31\n');
  await until(() => reports.length === 2);
  const gpu = node.gpus[0]?.uuid ?? '';
  expect(reports.map(({ xid }) => xid).sort()).toEqual([31, 79]);
  expect(reports.every((report) => report.gpu === gpu && report.count === 1)).toBe(true);
  expect([13, 31, 79].map((xid) => node.xidsOf(gpu).get(xid))).toEqual([0, 1, 1]);
});
