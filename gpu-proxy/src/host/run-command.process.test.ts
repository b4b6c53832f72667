import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { GpuRecord } from '@nvidia-virtual/ledger';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { pino } from 'pino';
import { GpuHealth } from '../gpus/health.js';
import { listGpus } from '../gpus/inventory.js';
import { GpuProbe } from '../gpus/probe.js';
import { Addon } from './addon.js';
import { locateInstallation } from './installation.js';
import { DIRECT } from './launcher.js';

const GPU: GpuRecord = {
  uuid: 'GPU-0',
  index: 0,
  name: 'g',
  memory: 1,
  contextMemory: 0,
  mode: 'exclusive',
};
/** Long enough for a shell to start its child on a busy machine. */
const PATIENCE_MS = 3000;
const HANGS = /hangs and cannot be ended/;

let directory: string;
let worker: string;
let installation: ReturnType<typeof locateInstallation>;
let backend: { readonly kind: 'real'; readonly driver: string };

/**
 * A worker whose output stays open after it was killed, like that of an unkillable process: its
 * child inherits the output.
 */
beforeEach(() => {
  directory = makePrivateDirectory();
  worker = path.join(directory, 'worker');
  answer('trap "" TERM', 'sleep 1000 &', `echo $! >>${directory}/hanging`, 'wait');
  installation = { ...locateInstallation(), worker };
  backend = { kind: 'real', driver: path.join(directory, 'libcuda.so.1') };
});
afterEach(() => {
  endHanging();
  removePrivateDirectory(directory);
});

function answer(...lines: string[]): void {
  writeFileSync(worker, ['#!/bin/sh', `echo >>${directory}/asked`, ...lines, ''].join('\n'));
  chmodSync(worker, 0o755);
}

function linesOf(name: string): string[] {
  const file = path.join(directory, name);
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
}

function endHanging(): void {
  for (const pid of linesOf('hanging')) process.kill(Number(pid), 'SIGKILL');
  writeFileSync(path.join(directory, 'hanging'), '');
}

test('one process waits for a hanging driver; after it the next one may ask', async () => {
  const list = () => listGpus({ installation, backend, patienceMs: PATIENCE_MS });
  await expect(list()).rejects.toThrow('cannot be listed: the driver does not answer for 3 s.');
  for (let time = 0; time < 3; time++) await expect(list()).rejects.toThrow(HANGS);
  expect(linesOf('asked')).toHaveLength(1);
  answer(`echo '{"gpus":[{"uuid":"GPU-0"}]}'`);
  endHanging();
  expect(await until(() => list().catch(() => undefined))).toEqual(['GPU-0']);
});

test('a hanging probe is killed; the next one starts when it has ended', async () => {
  const logger = pino({ level: 'silent' });
  const addon = new Addon(installation.addon);
  const probe = new GpuProbe(
    { executable: worker, backend, addon, launcher: DIRECT, logger },
    PATIENCE_MS,
  );
  expect(await probe.whyNoWorker(GPU)).toBe('a worker has no context after 3 s');
  expect(await probe.whyNoWorker(GPU)).toMatch(HANGS);
  expect(linesOf('asked')).toHaveLength(1);
  answer('echo gone >&2');
  endHanging();
  expect(
    await until(async () => ((await probe.whyNoWorker(GPU)) === 'gone' ? true : undefined)),
  ).toBe(true);
});

test('the GPUs of a hanging driver are unhealthy until it answers again', async () => {
  const logger = pino({ level: 'silent' });
  const listed = async () =>
    new Set(await listGpus({ installation, backend, patienceMs: PATIENCE_MS }));
  const whyNoWorker = async () => undefined;
  const health = new GpuHealth({
    gpus: [GPU],
    logger,
    everyMs: 1e6,
    listed,
    arrivals: { look: async () => {} },
    whyNoWorker,
  });
  await health.look();
  await health.look();
  expect(health.reason(GPU)).toMatch(HANGS);
  answer(`echo '{"gpus":[{"uuid":"GPU-0"}]}'`);
  endHanging();
  await until(async () => {
    await health.look();
    return health.reason(GPU) === undefined ? true : undefined;
  });
  health.end();
});

test('a probe that cannot start is logged', async () => {
  const said: string[] = [];
  const logger = pino({}, { write: (line: string) => void said.push(JSON.parse(line).msg) });
  const addon = new Addon(installation.addon);
  // spawn() throws on an argument with a null byte.
  const probe = new GpuProbe({
    executable: worker,
    backend: { kind: 'real', driver: 'a\0b' },
    addon,
    launcher: DIRECT,
    logger,
  });
  const health = new GpuHealth({
    ...{ gpus: [GPU], logger, everyMs: 1e6, arrivals: { look: async () => {} } },
    listed: async () => new Set([GPU.uuid]),
    whyNoWorker: (gpu) => probe.whyNoWorker(gpu),
  });
  const died = { killed: false, died: true, gpu: undefined } as Parameters<GpuHealth['noteEnd']>[0];
  for (let time = 0; time < 3; time++) health.noteEnd(died, [GPU.uuid]);
  await until(async () => said[0]);
  expect(said[0]).toMatch(/^The health of the GPUs could not be checked: /);
  health.end();
});
