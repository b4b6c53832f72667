import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  makePrivateDirectory,
  removePrivateDirectory,
} from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { pino } from 'pino';
import { locateInstallation } from '../host/installation.js';
import { DIRECT } from '../host/launcher.js';
import { NvmlMonitor, type NvmlReading } from './nvml-monitor.js';

const LINE = '{"gpus":[{"uuid":"GPU-a","processes":[{"pid":1,"memory":2,"busy":3}]}]}';
const READING = new Map([[1, new Map([['GPU-a', { memory: 2, busy: 3 }]])]]);

let directory: string;
let said: string[];
let readings: NvmlReading[];
let watch: NvmlMonitor;

beforeEach(() => {
  directory = makePrivateDirectory();
  said = [];
  readings = [];
});
afterEach(() => {
  watch.wanted = false;
  removePrivateDirectory(directory);
});

/** @param script of what stands in for the worker; without one, the worker itself. */
function begin(
  script?: string,
  { kind = 'real', nvml = true }: { kind?: 'real' | 'simulated'; nvml?: boolean } = {},
): void {
  const built = locateInstallation();
  const worker = script === undefined ? built.worker : path.join(directory, 'worker');
  if (script !== undefined) {
    writeFileSync(worker, `#!/bin/sh\necho >>${directory}/asked\n${script}\n`);
    chmodSync(worker, 0o755);
  }
  if (nvml) writeFileSync(path.join(directory, 'libnvidia-ml.so.1'), '');
  watch = new NvmlMonitor({
    installation: { ...built, worker },
    backend: { kind, driver: path.join(directory, 'libcuda.so.1') },
    launcher: DIRECT,
    logger: pino({ base: null }, { write: (line: string) => void said.push(JSON.parse(line).msg) }),
    reading: (reading) => readings.push(reading),
    patienceMs: 300,
  });
  watch.wanted = true;
}

function asked(): number {
  const file = path.join(directory, 'asked');
  return existsSync(file) ? readFileSync(file, 'utf8').length : 0;
}

test('every line is a reading, and what it said is forgotten when it says no more', async () => {
  begin(`echo '${LINE}'; echo '${LINE}'; exec sleep 1000`);
  await until(() => readings.length === 2);
  expect(readings).toEqual([READING, READING]);
  expect(watch.latest).toEqual(READING);
  await until(() => watch.latest === undefined);
  await until(() => said.length > 0);
  expect(said).toEqual([
    expect.stringMatching(
      /^NVML does not report the memory of the workers, .*: the driver does not answer for 0\.3 s$/,
    ),
  ]);
});

test('without NVML, and where simulated GPUs are not shared, nothing is started or said', () => {
  begin('exit 1', { nvml: false });
  expect(watch.latest).toBeUndefined();
  begin('exit 1', { kind: 'simulated' });
  expect([asked(), said]).toEqual([0, []]);
});

test('an NVML that does not work is said once', async () => {
  begin();
  await until(() => said.length > 0);
  expect(said).toEqual([expect.stringMatching(/libnvidia-ml\.so\.1 cannot be loaded/)]);
});

test('what cannot be read is no reading, and no end of gpu-proxy', async () => {
  begin(`echo nonsense; echo '${LINE}'; exec sleep 1000`);
  await until(() => readings.length === 1);
  expect(said).toEqual([expect.stringContaining('nonsense')]);
});

test('one that ended is started again after a while, and one that is not wanted ends', async () => {
  begin(`echo '${LINE}'`);
  await until(() => asked() === 2);
  watch.wanted = false;
  expect(watch.latest).toBeUndefined();
});
