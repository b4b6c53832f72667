import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { jest } from '@jest/globals';
import { makePrivateDirectory, removePrivateDirectory } from './private-directory.js';
import { identifyProcess } from './process-table.js';
import { StateDirectory } from './state-directory.js';

let root: string;
let place: string;

beforeEach(() => {
  root = makePrivateDirectory();
  place = path.join(root, 'deep', 'state');
});
afterEach(() => removePrivateDirectory(root));

test('it is made where it is missing; who does not know an allocation cannot find it', () => {
  const state = StateDirectory.open(place);
  expect([statSync(place).mode & 0o777, statSync(state.allocations).mode & 0o777]).toEqual([0o711, 0o711]);
  expect([state.adminSocket, state.ids()]).toEqual([path.join(place, 'admin.sock'), []]);
  state.release();
  expect(readdirSync(place)).toEqual(['allocations', 'boot']);
});

test('it has one owner at a time', () => {
  const state = StateDirectory.open(place);
  expect(() => StateDirectory.open(place)).toThrow(
    `Another gpu-proxy, process ${process.pid}, already serves the state directory ${place}.`,
  );
  state.release();
  const next = StateDirectory.open(place);
  state.release();
  expect(() => StateDirectory.open(place)).toThrow('Another gpu-proxy');
  next.release();
});

test.each([['99999999 1\n'], [`${process.pid} 1\n`], ['']])('a lock that nobody holds any more is taken over: %j', (lock) => {
  mkdirSync(place, { recursive: true });
  writeFileSync(path.join(place, 'lock'), lock);
  const state = StateDirectory.open(place);
  expect(readdirSync(place).sort()).toEqual(['allocations', 'boot', 'lock']);
  state.release();
});

test('what a killed proxy had begun is removed, and nothing else: not a grant that is being made either', () => {
  StateDirectory.open(place).release();
  const begun = ['.new-0123456789abcdef', '.gone-0123456789abcdef'];
  const young = ['.new-fedcba9876543210', '.gone-fedcba9876543210'];
  for (const name of [...begun, ...young, '0123456789abcdef', 'precious']) mkdirSync(path.join(place, 'allocations', name));
  for (const name of begun) utimesSync(path.join(place, 'allocations', name), new Date(0), new Date(0));
  const state = StateDirectory.open(place);
  expect(readdirSync(state.allocations).sort()).toEqual(['.new-fedcba9876543210', '0123456789abcdef', 'precious']);
  expect(state.ids()).toEqual(['0123456789abcdef']);
  state.release();
});

test('what was young then is removed once nobody can be making it any more', () => {
  const now = Date.now();
  jest.useFakeTimers({ now });
  try {
    const state = StateDirectory.open(place);
    const begin = (name: string, minutes: number) => {
      const directory = path.join(state.allocations, name);
      mkdirSync(directory);
      utimesSync(directory, new Date(now + minutes * 60_000), new Date(now + minutes * 60_000));
    };
    begin('.new-0123456789abcdef', 0);
    begin('.new-fedcba9876543210', 5);
    begin('0123456789abcdef', 0);
    jest.advanceTimersByTime(9 * 60_000);
    expect(readdirSync(state.allocations)).toHaveLength(3);
    jest.advanceTimersByTime(60_000);
    expect(readdirSync(state.allocations).sort()).toEqual(['.new-fedcba9876543210', '0123456789abcdef']);
    // Somebody removes it all: that ends no node.
    rmSync(place, { recursive: true });
    jest.advanceTimersByTime(10 * 60_000);
    state.release();
    expect(jest.getTimerCount()).toBe(0);
  } finally {
    jest.useRealTimers();
  }
});

test('what a proxy left that was killed while it took the lock is removed, and nothing of one that takes it now', () => {
  mkdirSync(place, { recursive: true });
  const { pid, startTime } = identifyProcess(process.ppid);
  const [dead, living, other, gone] = ['.lock-99999999', `.lock-${pid}`, `.lock-${pid}0000000`, `.lock-${pid}1111111`];
  const former = `${pid} 1\n`;
  const tries = { [dead]: '99999999 1\n', [living]: `${pid} ${startTime}\n`, [other]: former, [`${gone}-stale`]: former };
  for (const [name, text] of Object.entries({ ...tries, [`${dead}-stale`]: former, [`${living}-stale`]: former, '.lock-x': '' }))
    writeFileSync(path.join(place, name), text);
  StateDirectory.open(place).release();
  expect(readdirSync(place).sort()).toEqual([living, `${living}-stale`, '.lock-x', 'allocations', 'boot'].sort());
  // For a moment its file is empty.
  for (const name of [dead, living]) writeFileSync(path.join(place, name), '');
  StateDirectory.open(place).release();
  expect(readdirSync(place).sort()).toEqual([living, `${living}-stale`, '.lock-x', 'allocations', 'boot'].sort());
});

test('a temporary one goes with all that is in it', () => {
  const state = StateDirectory.makeTemporary();
  writeFileSync(path.join(state.allocations, 'x'), '');
  state.release();
  expect(existsSync(state.directory)).toBe(false);
});

test('a place that cannot be had is named, with the reason', () => {
  writeFileSync(path.join(root, 'file'), '');
  expect(() => StateDirectory.open(path.join(root, 'file', 'state'))).toThrow(
    `The state directory ${root}/file/state cannot be used: not a directory.`,
  );
});
