import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import {
  findProcesses,
  identifyProcess,
  isAlive,
  userOf,
  usersOfProcesses,
} from './process-table.js';
import { until } from './testing/eventually.js';

test('isAlive() is true for this process and names its program', () => {
  const identity = identifyProcess(process.pid);
  expect(identity.program).toBe(process.execPath);
  expect(isAlive(identity)).toBe(true);
});

test('isAlive() is false for an exited process and for a reused pid', async () => {
  const child = spawn('sleep', ['1000']);
  const identity = identifyProcess(child.pid as number);
  expect(isAlive(identity)).toBe(true);
  expect(isAlive({ ...identity, startTime: '1' })).toBe(false);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(isAlive(identity)).toBe(false);
});

test('isAlive() is false for a zombie', async () => {
  // The shell's child exits at once. sleep replaces the shell and never reaps the child.
  const parent = spawn('sh', ['-c', 'true & echo $!; exec sleep 1000'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const zombie = identifyProcess(Number(line.toString()));
  await until(() => !isAlive(zombie));
  expect(isAlive(zombie)).toBe(false);
  parent.kill('SIGKILL');
  await once(parent, 'exit');
});

/** `pthread_exit` in the first thread would end the interpreter. */
const WITHOUT_FIRST_THREAD = `
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).syscall(60, 0) # exit, of this thread
`;

test('isAlive() is true for a process whose first thread has exited', async () => {
  const child = spawn('python3', ['-c', WITHOUT_FIRST_THREAD]);
  const identity = identifyProcess(child.pid as number);
  const status = () => readFileSync(`/proc/${identity.pid}/status`, 'utf8');
  try {
    await until(() => /^State:\tZ/m.test(status()));
    expect(isAlive(identity)).toBe(true);
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  expect(isAlive(identity)).toBe(false);
});

const asRoot = process.getuid?.() === 0 ? test : test.skip;
/** No other process has it, also if two of these tests run at once. */
const UID = 1_000_000 + process.pid;
const users = () => [...usersOfProcesses({ first: UID, last: UID })];

asRoot('a user id is found as long as a process has it, even a zombie', async () => {
  const script = `setpriv --reuid ${UID} sleep 1000 & echo $!; exec sleep 1000`;
  const parent = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    const [line] = (await once(parent.stdout, 'data')) as [Buffer];
    const child = identifyProcess(Number(line.toString()));
    await until(() => userOf(child.pid) === UID);
    expect(users()).toEqual([UID]);
    process.kill(child.pid, 'SIGKILL');
    await until(() => !isAlive(child));
    expect(users()).toEqual([UID]);
  } finally {
    parent.kill('SIGKILL');
    await once(parent, 'exit');
  }
  await until(() => users().length === 0);
});

asRoot('the user id of a process in another pid namespace is not found', async () => {
  const inside = ['sh', '-c', `setpriv --reuid ${UID} sleep 1000`];
  const parent = spawn('unshare', ['--pid', '--fork', '--kill-child', ...inside]);
  try {
    await until(() => readdirSync('/proc').some((pid) => userOf(Number(pid)) === UID));
    expect(users()).toEqual([]);
  } finally {
    parent.kill('SIGKILL');
    await once(parent, 'exit');
  }
});

asRoot('a process in another pid namespace is not found by its command line', async () => {
  const words = ['--figures', `/figures-of-${process.pid}`];
  // Not python3: it may be a shell script, whose forks have the same command line for a moment.
  const inside = `exec ${process.execPath} -e 'setInterval(() => {}, 1e6)' -- ${words.join(' ')}`;
  const has = (pid: string) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('\0--figures\0');
  const parent = spawn('unshare', ['--pid', '--fork', '--kill-child', 'sh', '-c', inside]);
  const own = spawn('sh', ['-c', inside]);
  try {
    await until(() => childrenOf(parent.pid).some(has));
    await until(() => has(String(own.pid)));
    expect(findProcesses(...words).map(({ pid }) => pid)).toEqual([own.pid]);
  } finally {
    for (const each of [parent, own]) each.kill('SIGKILL');
  }
});

function childrenOf(pid: number | undefined): string[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? [];
}
