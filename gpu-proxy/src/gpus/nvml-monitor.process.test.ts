import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { pino } from 'pino';
import { locateInstallation } from '../host/installation.js';
import { DIRECT } from '../host/launcher.js';
import { NvmlMonitor, type NvmlReading, parseReading } from './nvml-monitor.js';

const LINE = '{"gpus":[{"uuid":"GPU-a","processes":[{"pid":1,"memory":2,"busy":3}]}]}';
const READING = new Map([[1, new Map([['GPU-a', { memory: 2, busy: 3 }]])]]);

let directory: string;
let said: string[];
let readings: NvmlReading[];
let monitor: NvmlMonitor<NvmlReading>;

beforeEach(() => {
  directory = makePrivateDirectory();
  said = [];
  readings = [];
});
afterEach(() => {
  monitor.wanted = false;
  removePrivateDirectory(directory);
});

/** @param script shell script that replaces the worker; without one, the worker itself runs */
function begin(
  script?: string,
  {
    kind = 'real',
    nvml = true,
    patienceMs,
  }: { kind?: 'real' | 'simulated'; nvml?: boolean; patienceMs?: number } = {},
): void {
  const built = locateInstallation();
  const worker = script === undefined ? built.worker : path.join(directory, 'worker');
  if (script !== undefined) {
    writeFileSync(worker, `#!/bin/sh\necho >>${directory}/asked\n${script}\n`);
    chmodSync(worker, 0o755);
  }
  if (nvml) writeFileSync(path.join(directory, 'libnvidia-ml.so.1'), '');
  monitor = new NvmlMonitor({
    installation: { ...built, worker },
    backend: { kind, driver: path.join(directory, 'libcuda.so.1') },
    launcher: DIRECT,
    logger: pino({ base: null }, { write: (line: string) => void said.push(JSON.parse(line).msg) }),
    words: ['--watch', '250'],
    consequence: 'NVML cannot be read, so quotas are not checked',
    parse: parseReading,
    reading: (reading) => readings.push(reading),
    ...(patienceMs !== undefined && { patienceMs }),
  });
  monitor.wanted = true;
}

function asked(): number {
  const file = path.join(directory, 'asked');
  return existsSync(file) ? readFileSync(file, 'utf8').length : 0;
}

test('each line is a reading', async () => {
  begin(`echo '${LINE}'; echo '${LINE}'; exec sleep 1000`);
  await until(() => readings.length === 2);
  expect(readings).toEqual([READING, READING]);
  expect([monitor.latest, said]).toEqual([READING, []]);
});

test('the latest reading expires when no further one comes', async () => {
  begin(`echo '${LINE}'; exec sleep 1000`, { patienceMs: 300 });
  await until(() => monitor.latest === undefined);
  await until(() => said.length > 0);
  expect(said).toEqual([
    expect.stringMatching(
      /^NVML cannot be read, so quotas are not checked: the driver does not answer for 0\.3 s$/,
    ),
  ]);
});

test('without NVML, or with unshared simulated GPUs, nothing is started or logged', () => {
  begin('exit 1', { nvml: false });
  expect(monitor.latest).toBeUndefined();
  begin('exit 1', { kind: 'simulated' });
  expect([asked(), said]).toEqual([0, []]);
});

test('an NVML that cannot be loaded is logged once', async () => {
  begin();
  await until(() => said.length > 0);
  expect(said).toEqual([expect.stringMatching(/libnvidia-ml\.so\.1 cannot be loaded/)]);
});

test('a malformed line is logged and skipped', async () => {
  begin(`echo nonsense; echo '${LINE}'; exec sleep 1000`);
  await until(() => readings.length === 1);
  expect(said).toEqual([expect.stringContaining('nonsense')]);
});

test('a process that ended is restarted, and it ends when it is no longer wanted', async () => {
  begin(`echo '${LINE}'`);
  await until(() => asked() >= 2);
  monitor.wanted = false;
  expect(monitor.latest).toBeUndefined();
});
