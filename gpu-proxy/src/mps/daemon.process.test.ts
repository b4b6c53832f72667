import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readIfThere } from '@nvidia-virtual/service/files';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { isAlive, type ProcessIdentity } from '@nvidia-virtual/service/process-table';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { pino } from 'pino';
import { Addon } from '../host/addon.js';
import { locateInstallation } from '../host/installation.js';
import { DIRECT } from '../host/launcher.js';
import { makeMpsStandIn } from '../testing/mps-stand-in.js';
import { GPU } from '../testing/node-snapshot.js';
import { findMpsControl, MpsControl } from './control.js';
import { MpsDaemon } from './daemon.js';

const RECORD = {
  uuid: GPU,
  index: 3,
  name: 'G',
  memory: 1,
  contextMemory: 0,
  mode: 'concurrent',
} as const;
const DRIVER = '/nowhere/libcuda.so.1';
const addon = new Addon(locateInstallation().addon);

let directory: string;
let control: MpsControl;
let log: Record<string, unknown>[];
let events: string[];
let daemons: MpsDaemon[];

beforeEach(() => {
  directory = makePrivateDirectory();
  const executable = makeMpsStandIn(path.join(directory, 'bin'));
  control = new MpsControl(
    { executable, driver: DRIVER, launcher: DIRECT },
    path.join(directory, 'mps'),
    GPU,
  );
  [log, events, daemons] = [[], [], []];
});
afterEach(() => {
  for (const daemon of daemons) daemon.leave();
  control.quit();
  removePrivateDirectory(directory);
});

function start(executable = path.join(directory, 'bin', 'nvidia-cuda-mps-control')): MpsDaemon {
  const daemon = new MpsDaemon({
    executable,
    driver: DRIVER,
    gpu: RECORD,
    directory: path.join(directory, 'mps'),
    uid: undefined,
    addon,
    launcher: DIRECT,
    logger: pino({ base: null }, { write: (line: string) => log.push(JSON.parse(line)) }),
    ready: () => events.push('ready'),
    restarted: () => events.push('restarted'),
  });
  daemons.push(daemon);
  return daemon;
}

test('it is started with pipe directories and GPU, and is ready when it answers', async () => {
  const daemon = start();
  expect(daemon.ready).toBe(false);
  await until(() => daemon.ready);
  expect([events, log, daemon.pipes]).toEqual([['ready'], [], control.pipes]);
  expect(await control.answers()).toBe(true);
});

test('a daemon that dies is restarted, and the consequences are logged', async () => {
  const daemon = start();
  await until(() => daemon.ready);
  process.kill((control.find() as ProcessIdentity).pid, 'SIGKILL');
  await until(() => events.length === 3);
  expect([events, daemon.ready]).toEqual([['ready', 'restarted', 'ready'], true]);
  expect(log[0]?.['msg']).toMatch(
    /^The MPS control daemon of GPU 3 ended: Starting control daemon for GPU-.* It is restarted, /,
  );
});

test('a daemon of an earlier proxy is found and reused, and its death is noticed', async () => {
  const first = start();
  await until(() => first.ready);
  const { pid } = control.find() as ProcessIdentity;
  first.leave();
  const second = start();
  await until(() => second.ready);
  expect(control.find()?.pid).toBe(pid);
  process.kill(pid, 'SIGKILL');
  await until(() => events.length === 4);
  expect(events).toEqual(['ready', 'ready', 'restarted', 'ready']);
  expect(control.find()?.pid).not.toBe(pid);
});

/**
 * Its output stays open after it was killed, like that of an unkillable process: its child inherits
 * the output.
 */
test('no second control process is started while one hangs', async () => {
  const executable = path.join(directory, 'hanging');
  const asked = path.join(directory, 'asked');
  writeFileSync(executable, `#!/bin/sh\nsleep 1000 &\necho $! >>${asked}\nwait\n`, { mode: 0o755 });
  const hanging = new MpsControl(
    { executable, driver: DRIVER, launcher: DIRECT },
    path.join(directory, 'mps'),
    GPU,
    3000,
  );
  expect([await hanging.answers(), await hanging.answers()]).toEqual([false, false]);
  const [keeper, ...more] = (readIfThere(asked) ?? '').trim().split('\n');
  expect(more).toEqual([]);
  expect(Number(keeper)).toBeGreaterThan(1);
  writeFileSync(executable, '#!/bin/sh\nexit 0\n');
  process.kill(Number(keeper), 'SIGKILL');
  await until(() => hanging.answers());
});

const asRoot = process.getuid?.() === 0 ? test : test.skip;

asRoot.each([
  ['another user', 'os.setuid(65534)'],
  ['another user who became this one', 'os.setresuid(65534, 0, 0)'],
  ['another root directory', 'os.chroot(sys.argv[1])'],
])('a process that looks like it but has %s is not mistaken for it', async (_, change) => {
  const script = `import os, sys, time; ${change}; print("there", flush=True); time.sleep(600)`;
  const env = { PATH: process.env['PATH'], CUDA_MPS_PIPE_DIRECTORY: control.pipes };
  const other = spawn('python3', ['-c', script, directory, 'nvidia-cuda-mps-control', '-f'], {
    env,
  });
  try {
    await once(other.stdout, 'data');
    expect(control.find()).toBeUndefined();
    const daemon = start();
    await until(() => daemon.ready);
    expect(control.find()?.pid).not.toBe(other.pid);
  } finally {
    other.kill('SIGKILL');
  }
});

test('end() ends it, and leave() does not', async () => {
  const daemon = start();
  await until(() => daemon.ready);
  const identity = control.find() as ProcessIdentity;
  daemon.leave();
  expect(isAlive(identity)).toBe(true);
  daemon.end();
  expect([isAlive(identity), control.find(), log]).toEqual([false, undefined, []]);
});

test('a daemon that cannot be started is logged and retried', async () => {
  const daemon = start('/nonexistent/nvidia-cuda-mps-control');
  await until(() => log.length > 1);
  expect(daemon.ready).toBe(false);
  expect(log[0]?.['msg']).toContain('ended: spawn /nonexistent/nvidia-cuda-mps-control ENOENT.');
});

test('a directory whose socket names would be too long is refused', () => {
  const long = path.join(directory, 'x'.repeat(100));
  const options = {
    executable: '/x',
    driver: DRIVER,
    launcher: DIRECT,
    gpu: RECORD,
    uid: undefined,
    addon,
    logger: pino({ level: 'silent' }),
  };
  const daemon = () =>
    new MpsDaemon({ ...options, directory: long, ready: () => {}, restarted: () => {} });
  expect(daemon).toThrow(/the limit is 107/);
});

test('a start that fails before the spawn is logged and retried', async () => {
  const inTheWay = path.join(directory, 'mps', 'daemon.log');
  mkdirSync(inTheWay, { recursive: true });
  const daemon = start();
  expect(log[0]?.['msg']).toMatch(
    /^The MPS control daemon of GPU 3 ended: illegal operation on a directory\. It is restarted/,
  );
  rmSync(inTheWay, { recursive: true });
  await until(() => daemon.ready);
});

test('nvidia-cuda-mps-control is searched beside the driver, then in PATH', () => {
  const root = path.join(directory, 'driver');
  const inPath = path.join(directory, 'bin', 'nvidia-cuda-mps-control');
  const driver = path.join(root, 'usr', 'lib', 'x86_64-linux-gnu', 'libcuda.so.1');
  expect(findMpsControl(driver, DIRECT, `:/nonexistent:${path.join(directory, 'bin')}`)).toBe(
    inPath,
  );
  expect(findMpsControl(driver, DIRECT, '/nonexistent')).toBeUndefined();
  const beside = makeMpsStandIn(path.join(root, 'usr', 'bin'));
  expect(findMpsControl(driver, DIRECT, path.join(directory, 'bin'))).toBe(beside);
  // In a container, the host's files have other paths.
  const seen = (file: string) => path.join(root, file);
  expect(findMpsControl('/usr/lib/x86_64-linux-gnu/libcuda.so.1', { seen }, '')).toBe(
    '/usr/bin/nvidia-cuda-mps-control',
  );
});
