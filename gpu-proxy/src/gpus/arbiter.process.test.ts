import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { AllocationSpecification } from '@nvidia-virtual/ledger';
import { DEFAULT_LIMITS } from '@nvidia-virtual/node-state/specification';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { findProcess, findProcesses } from '@nvidia-virtual/service/process-table';
import { eventually, until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { pino } from 'pino';
import { Addon } from '../host/addon.js';
import { locateInstallation } from '../host/installation.js';
import { Arbiter, type ArbiterTable } from './arbiter.js';

const SPECIFICATION: AllocationSpecification = {
  version: 1,
  id: '0123456789abcdef',
  name: undefined,
  gpus: ['GPU-a'],
  memory: 0,
  share: 25,
  policy: 'fixed',
  priority: 0,
  ...{ mode: 'exclusive', limits: DEFAULT_LIMITS, uid: undefined, createdAt: '', draining: false },
};

/** Refuses what an arbiter before this version refuses. */
const FORMER = `
require('node:net').createServer((connection) => {
  connection.on('error', () => {});
  require('node:readline').createInterface({ input: connection }).on('line', (line) => {
    if (line.startsWith('guarantee'))
      connection.write('error "guarantee" is not a command; the commands are begin, commit\\n');
  });
}).listen(process.argv.at(-1), () => console.log('ready'));
`;

let directory: string;
let socket: string;
let log: Record<string, unknown>[];
let table: ArbiterTable;
let arbiters: Arbiter[];
let restarts: number;

beforeEach(() => {
  directory = makePrivateDirectory();
  socket = path.join(directory, 'arbiter.sock');
  log = [];
  restarts = 0;
  arbiters = [];
  table = {
    allocations: [SPECIFICATION],
    workers: [{ pid: process.pid, allocation: SPECIFICATION.id }],
  };
});
afterEach(async () => {
  for (const arbiter of arbiters) arbiter.leave();
  const pid = pidOf();
  if (pid !== undefined) process.kill(pid, 'SIGKILL');
  removePrivateDirectory(directory);
});

function start(): Arbiter {
  const logger = pino({ base: null }, { write: (line: string) => log.push(JSON.parse(line)) });
  const arbiter = new Arbiter({
    command: (args) => [locateInstallation().arbiter, args],
    socket,
    addon: new Addon(locateInstallation().addon),
    logger,
    window: 5000,
    overrunLimit: 0,
    guaranteedShare: 50,
    restarted: () => restarts++,
    table: () => table,
  });
  arbiters.push(arbiter);
  return arbiter;
}

function pidOf(): number | undefined {
  return findProcess('--socket', socket)?.pid;
}

/** Waits until the arbiter reports figures of the allocation. */
async function known(arbiter: Arbiter, id: string): Promise<void> {
  await until(async () => {
    await arbiter.refresh();
    return arbiter.knows(id);
  });
}

test('it is started, gets the table, and reports the granted time', async () => {
  const arbiter = start();
  await known(arbiter, SPECIFICATION.id);
  expect(arbiter.timeOf(SPECIFICATION.id)).toEqual({
    granted: 0,
    waited: 0,
    overrun: 0,
    windows: 0,
  });
  arbiter.put({ ...SPECIFICATION, id: 'fedcba9876543210', latency: 'low' });
  arbiter.addWorker(process.ppid, 'fedcba9876543210');
  await known(arbiter, 'fedcba9876543210');
  arbiter.removeWorker(process.ppid);
  // The answer to this one still has the figures of the allocation.
  const answered = arbiter.refresh();
  arbiter.remove('fedcba9876543210');
  await answered;
  await arbiter.refresh();
  expect(arbiter.knows('fedcba9876543210')).toBe(false);
  arbiter.window = 20_000;
  await arbiter.refresh();
  expect([log, restarts, arbiter.connected]).toEqual([[], 0, true]);
});

test('an arbiter that dies is restarted, and gets the complete table', async () => {
  const arbiter = start();
  await known(arbiter, SPECIFICATION.id);
  const pid = pidOf() as number;
  process.kill(pid, 'SIGKILL');
  await until(() => ![pid, undefined].includes(pidOf()));
  arbiter.remove(SPECIFICATION.id);
  await known(arbiter, SPECIFICATION.id);
  expect(restarts).toBe(1);
  expect(log.map(({ msg }) => msg)).toContain(
    'The arbiter of GPU time ended: it ended with SIGKILL. It is started again.',
  );
});

test('an arbiter that hangs with an open socket is killed and restarted', async () => {
  const arbiter = start();
  await known(arbiter, SPECIFICATION.id);
  const pid = pidOf() as number;
  process.kill(pid, 'SIGSTOP');
  await until(() => ![pid, undefined].includes(pidOf()));
  arbiter.remove(SPECIFICATION.id);
  await known(arbiter, SPECIFICATION.id);
  expect(restarts).toBe(1);
  expect(log.map(({ msg }) => msg)).toContain(
    'The arbiter of GPU time has not answered for 5 s. It is killed and started again.',
  );
});

test('another process with its command line is not killed in its place', async () => {
  const decoy = spawn(process.execPath, [
    ...['-e', 'console.log("ready"); setInterval(() => {}, 1000)'],
    ...['--', '--socket', socket],
  ]);
  await once(decoy.stdout, 'data');
  const real = () =>
    findProcesses('--socket', socket).find(({ pid }) => pid !== decoy.pid)?.pid as number;
  const arbiter = start();
  await known(arbiter, SPECIFICATION.id);
  const pid = real();
  process.kill(pid, 'SIGSTOP');
  await until(() => ![pid, undefined].includes(real()));
  arbiter.remove(SPECIFICATION.id);
  await known(arbiter, SPECIFICATION.id);
  expect(decoy.signalCode).toBeNull();
  decoy.kill('SIGKILL');
  await once(decoy, 'exit');
});

test('the overrun limit is sent, and again when it changes', async () => {
  const arbiter = start();
  await known(arbiter, SPECIFICATION.id);
  arbiter.overrunLimit = 1_500_000;
  await arbiter.refresh();
  expect(log).toEqual([]);
  arbiter.overrunLimit = 86_401_000_000;
  await eventually(() =>
    expect(log[0]?.['msg']).toBe(
      'The arbiter of GPU time refused a line: "86401" is not a limit of an overrun: give 0 ' +
        '(none) to 86400 seconds.',
    ),
  );
});

test('the guaranteed share is sent, and again when it changes', async () => {
  const arbiter = start();
  await known(arbiter, SPECIFICATION.id);
  arbiter.guaranteedShare = 0;
  await arbiter.refresh();
  expect(log).toEqual([]);
  arbiter.guaranteedShare = 101;
  await eventually(() =>
    expect(log[0]?.['msg']).toBe(
      'The arbiter of GPU time refused a line: "101" is not a guarantee: give 0 (none) to 100 ' +
        'percent.',
    ),
  );
});

test('an invalid window is logged with the error of the arbiter', async () => {
  const arbiter = start();
  await known(arbiter, SPECIFICATION.id);
  arbiter.window = 1;
  await eventually(() =>
    expect(log[0]?.['msg']).toBe(
      'The arbiter of GPU time refused a line: "1" is not a window: give 500 to 100000 ' +
        'microseconds.',
    ),
  );
});

test('a running arbiter is reused', async () => {
  const first = start();
  await known(first, SPECIFICATION.id);
  const pid = pidOf();
  first.leave();
  table = { allocations: [{ ...SPECIFICATION, id: 'fedcba9876543210' }], workers: [] };
  const second = start();
  await known(second, 'fedcba9876543210');
  expect([pidOf(), second.knows(SPECIFICATION.id)]).toEqual([pid, false]);
});

test('an arbiter of a version without guarantees is replaced, which is no failure', async () => {
  const former = spawn(process.execPath, ['-e', FORMER, '--', '--socket', socket]);
  await once(former.stdout, 'data');
  const arbiter = start();
  await known(arbiter, SPECIFICATION.id);
  expect([former.signalCode, restarts]).toEqual(['SIGTERM', 0]);
  expect(log.map(({ msg }) => msg)).toContain(
    'The arbiter of GPU time is of a former version. It is replaced by one of this version.',
  );
  await until(() => pidOf() !== undefined);
});

test('end() ends the arbiter that it started', async () => {
  const arbiter = start();
  await known(arbiter, SPECIFICATION.id);
  await arbiter.end();
  expect(pidOf()).toBeUndefined();
});

test('an arbiter that cannot start is logged with the reason', async () => {
  rmSync(directory, { recursive: true });
  const logger = pino({ base: null }, { write: (line: string) => log.push(JSON.parse(line)) });
  const arbiter = new Arbiter({
    command: (args) => ['/nonexistent', args],
    socket: `${directory}.sock`,
    addon: new Addon(locateInstallation().addon),
    logger,
    window: 5000,
    overrunLimit: 0,
    guaranteedShare: 50,
    table: () => table,
  });
  arbiters.push(arbiter);
  await until(() => log.length > 0);
  expect(log[0]?.['msg']).toContain('The arbiter of GPU time ended: spawn /nonexistent ENOENT.');
  rmSync(`${directory}.sock.log`);
});

test('a start that fails before the spawn is logged and retried', async () => {
  mkdirSync(`${socket}.log`);
  const arbiter = start();
  await until(() => log.length > 0);
  expect(log[0]?.['msg']).toBe(
    'The arbiter of GPU time ended: illegal operation on a directory. It is started again.',
  );
  rmSync(`${socket}.log`, { recursive: true });
  await known(arbiter, SPECIFICATION.id);
});
