import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { GpuRecord } from '@nvidia-virtual/ledger';
import { pino } from 'pino';
import { compareMemory, DeviceMemory, parseProcessMemory } from './device-memory.js';
import { locateInstallation } from './installation.js';
import { DIRECT } from './launcher.js';
import { makePrivateDirectory, removePrivateDirectory } from './private-directory.js';
import { sessionRecord, sessionUse } from './testing/node-snapshot.js';

const MiB = 2 ** 20;
const CONTEXT = 500 * MiB;
const [A, B] = ['a', 'b'].map((name) => ({ uuid: `GPU-${name}`, contextMemory: CONTEXT }) as GpuRecord);
const GPUS = [A, B] as GpuRecord[];

let directory: string;
beforeEach(() => {
  directory = makePrivateDirectory();
});
afterEach(() => removePrivateDirectory(directory));

/** Slot and number are the same; the worker's pid is 200 more. */
function session(number: number, memory: number) {
  return { record: sessionRecord(number), use: sessionUse(0, memory) };
}

function reported(...processes: [pid: number, gpu: string, memory: number][]) {
  const gpus = [...new Set(processes.map(([, gpu]) => gpu))].map((uuid) => ({
    uuid,
    processes: processes.filter(([, gpu]) => gpu === uuid).map(([pid, , memory]) => ({ pid, memory })),
  }));
  return parseProcessMemory(JSON.stringify({ gpus }));
}

test('what is charged, and the context that is provided for, is accounted for', () => {
  const one = { specification: { gpus: ['GPU-a'] }, sessions: [session(0, 100 * MiB)] };
  expect(compareMemory(one, GPUS, reported([200, 'GPU-a', CONTEXT + 100 * MiB]))).toEqual({
    reported: CONTEXT + 100 * MiB,
    unaccounted: 0,
  });
  expect(compareMemory(one, GPUS, reported([200, 'GPU-a', CONTEXT + 107 * MiB]))?.unaccounted).toBe(7 * MiB);
  expect(compareMemory(one, GPUS, reported([200, 'GPU-a', CONTEXT + 90 * MiB]))?.unaccounted).toBe(-10 * MiB);
});

test("a further session's context is charged to it, and its context on a second GPU is not", () => {
  const further = { specification: { gpus: ['GPU-a', 'GPU-b'] }, sessions: [session(0, 0), session(1, CONTEXT + 5 * MiB)] };
  const processes = reported([200, 'GPU-a', CONTEXT], [201, 'GPU-a', CONTEXT + 5 * MiB], [201, 'GPU-b', CONTEXT + 3 * MiB]);
  expect(compareMemory(further, GPUS, processes)).toEqual({ reported: 3 * CONTEXT + 8 * MiB, unaccounted: 3 * MiB });
});

test('sessions that NVML does not know are left out, and an allocation of only such ones has no figure', () => {
  const two = { specification: { gpus: ['GPU-a'] }, sessions: [session(0, 0), session(1, 999 * MiB)] };
  expect(compareMemory(two, GPUS, reported([200, 'GPU-a', CONTEXT]))?.unaccounted).toBe(0);
  expect(compareMemory(two, GPUS, reported([7, 'GPU-a', CONTEXT]))).toBeUndefined();
});

test('without a real GPU, without NVML and with one that does not work there is no figure, which is said once', async () => {
  const log: string[] = [];
  const logger = pino({ base: null }, { write: (line: string) => log.push((JSON.parse(line) as { msg: string }).msg) });
  const installation = locateInstallation();
  const driver = path.join(directory, 'libcuda.so.1');
  const read = (kind: 'real' | 'simulated') =>
    new DeviceMemory({ installation, backend: { kind, driver }, launcher: DIRECT, logger }).read();
  expect([(await read('simulated')).size, (await read('real')).size, log]).toEqual([0, 0, []]);
  writeFileSync(path.join(directory, 'libnvidia-ml.so.1'), '');
  expect((await read('real')).size).toBe(0);
  expect(log).toEqual([expect.stringMatching(/^NVML does not say what the workers hold: .*libnvidia-ml\.so\.1 cannot be loaded/)]);
});

test('the answer is kept for a moment, since many may ask', async () => {
  const counter = path.join(directory, 'asked');
  const worker = path.join(directory, 'worker');
  writeFileSync(worker, `#!/bin/sh\necho >>${counter}\necho '{"gpus":[{"uuid":"GPU-a","processes":[{"pid":1,"memory":2}]}]}'\n`);
  chmodSync(worker, 0o755);
  writeFileSync(path.join(directory, 'libnvidia-ml.so.1'), '');
  const installation = { ...locateInstallation(), worker };
  const memory = new DeviceMemory({
    installation,
    backend: { kind: 'real', driver: path.join(directory, 'libcuda.so.1') },
    launcher: DIRECT,
    logger: pino({ level: 'silent' }),
  });
  await memory.read();
  writeFileSync(worker, '#!/bin/sh\nexit 1\n');
  expect(await memory.read()).toEqual(new Map([[1, new Map([['GPU-a', 2]])]]));
});
