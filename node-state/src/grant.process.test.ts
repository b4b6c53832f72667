import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { GRANT, prepareGrant, readGrant } from './grant.js';

let state: string;
beforeEach(() => {
  state = makePrivateDirectory();
});
afterEach(() => removePrivateDirectory(state));

test('prepareGrant() creates a directory with a subdirectory for the container', () => {
  const { grant, clientDirectory } = prepareGrant(state, ['a-00', 'b-01'], 'build');
  const directory = path.join(state, 'allocations', grant.id);
  expect([grant.slots, grant.build, clientDirectory]).toEqual([
    ['a-00', 'b-01'],
    'build',
    path.join(directory, 'client'),
  ]);
  expect(readGrant(directory)).toEqual(grant);
  expect(statSync(clientDirectory).isDirectory()).toBe(true);
});

test.each(['', '{', '{"version":2}'])('%j is not a grant', (text) => {
  const directory = path.join(state, 'allocations', '0123456789abcdef');
  mkdirSync(directory, { recursive: true });
  expect(readGrant(directory)).toBeUndefined();
  writeFileSync(path.join(directory, GRANT), text);
  expect(readGrant(directory)).toBeUndefined();
});

const canTrace = spawnSync('strace', ['true']).status === 0;

(canTrace ? test : test.skip)(
  'a grant is synced to disk before it is renamed, and the rename before Allocate returns',
  () => {
    const log = path.join(state, 'calls');
    const script = `
    const { prepareGrant } = await \
import(${JSON.stringify(pathToFileURL(path.resolve(import.meta.dirname, 'grant.js')))});
    process.stdout.write(prepareGrant(${JSON.stringify(state)}, ['a-00']).grant.id);`;
    const traced = [
      '-f',
      '-y',
      '-o',
      log,
      '-e',
      'trace=fsync,rename',
      process.execPath,
      '--input-type=module',
      '-e',
      script,
    ];
    const { status, stdout } = spawnSync('strace', traced, { encoding: 'utf8' });
    expect(status).toBe(0);
    const allocations = path.join(state, 'allocations');
    const unfinished = path.join(allocations, `.new-${stdout}`);
    const calls = [
      ...readFileSync(log, 'utf8').matchAll(/(?:fsync\(\d+<([^>]+)>|rename\("[^"]+", "([^"]+)")/g),
    ];
    expect(calls.map(([, synced, renamed]) => synced ?? `=> ${renamed}`)).toEqual([
      path.join(unfinished, '.new-grant.json'),
      `=> ${path.join(unfinished, GRANT)}`,
      unfinished,
      `=> ${path.join(allocations, stdout)}`,
      allocations,
      state,
    ]);
  },
);
