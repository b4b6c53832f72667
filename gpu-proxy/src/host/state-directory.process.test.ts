import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { jest } from '@jest/globals';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { Addon } from './addon.js';
import { locateInstallation } from './installation.js';
import { StateDirectory } from './state-directory.js';

const ADDON = new Addon(locateInstallation().addon);
const open = (directory: string) => StateDirectory.open(directory, ADDON);

let root: string;
let place: string;

beforeEach(() => {
  root = makePrivateDirectory();
  place = path.join(root, 'deep', 'state');
});
afterEach(() => removePrivateDirectory(root));

test('it is created if it is missing, and does not let other users list allocations', () => {
  const state = open(place);
  expect([statSync(place).mode & 0o777, statSync(state.allocations).mode & 0o777]).toEqual([
    0o711, 0o711,
  ]);
  expect([state.adminSocket, state.ids()]).toEqual([path.join(place, 'admin.sock'), []]);
  state.release();
  expect(readdirSync(place)).toEqual(['allocations', 'arbiter', 'boot', 'lock']);
});

test('it has one owner at a time', () => {
  const state = open(place);
  expect(() => open(place)).toThrow(
    `Another gpu-proxy, process ${process.pid}, already serves the state directory ${place}.`,
  );
  state.release();
  const next = open(place);
  state.release();
  expect(() => open(place)).toThrow('Another gpu-proxy');
  next.release();
});

test.each([['99999999 1\n'], [`${process.pid} 1\n`], ['']])(
  'a lock file of a dead process is ignored: %j',
  (text) => {
    mkdirSync(place, { recursive: true });
    writeFileSync(path.join(place, 'lock'), text);
    const state = open(place);
    expect(readFileSync(path.join(place, 'lock'), 'utf8')).toMatch(
      new RegExp(`^${process.pid} \\d+\n$`),
    );
    state.release();
  },
);

test('a killed process leaves no lock behind', async () => {
  const module = new URL('./state-directory.js', import.meta.url).href;
  const script = `import(${JSON.stringify(module)}).then(async \
({ StateDirectory }) => {
    const { Addon } = await import(${JSON.stringify(new URL('./addon.js', import.meta.url).href)});
    StateDirectory.open(${JSON.stringify(place)}, 
      new Addon(${JSON.stringify(locateInstallation().addon)}));
    console.log('locked');
    setInterval(() => {}, 1000);
  })`;
  const other = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(other.stdout, 'data');
  expect(() => open(place)).toThrow(`Another gpu-proxy, process ${other.pid}, already serves`);
  other.kill('SIGKILL');
  await once(other, 'exit');
  open(place).release();
});

test('incomplete entries of a killed proxy are removed, but no grants in progress', () => {
  open(place).release();
  const begun = ['.new-0123456789abcdef', '.gone-0123456789abcdef'];
  const young = ['.new-fedcba9876543210', '.gone-fedcba9876543210'];
  for (const name of [...begun, ...young, '0123456789abcdef', 'precious'])
    mkdirSync(path.join(place, 'allocations', name));
  for (const name of begun)
    utimesSync(path.join(place, 'allocations', name), new Date(0), new Date(0));
  const state = open(place);
  expect(readdirSync(state.allocations).sort()).toEqual([
    '.new-fedcba9876543210',
    '0123456789abcdef',
    'precious',
  ]);
  expect(state.ids()).toEqual(['0123456789abcdef']);
  state.release();
});

test('recent incomplete entries are removed later, when nobody can be creating them', () => {
  const now = Date.now();
  jest.useFakeTimers({ now });
  try {
    const state = open(place);
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
    expect(readdirSync(state.allocations).sort()).toEqual([
      '.new-fedcba9876543210',
      '0123456789abcdef',
    ]);
    // Removing the whole directory does not end the node.
    rmSync(place, { recursive: true });
    jest.advanceTimersByTime(10 * 60_000);
    state.release();
    expect(jest.getTimerCount()).toBe(0);
  } finally {
    jest.useRealTimers();
  }
});

test('a temporary directory is removed with its content', () => {
  const state = StateDirectory.makeTemporary();
  writeFileSync(path.join(state.allocations, 'x'), '');
  state.release();
  expect(existsSync(state.directory)).toBe(false);
});

test('a directory that cannot be created is named with the reason', () => {
  writeFileSync(path.join(root, 'file'), '');
  expect(() => open(path.join(root, 'file', 'state'))).toThrow(
    `The state directory ${root}/file/state cannot be used: not a directory.`,
  );
});
