import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { prepareGrant } from '@nvidia-virtual/node-state/grant';
import { versionsInUse } from './grants.js';
import { installVersion, removeOldVersions } from './versions.js';

let directory: string;
let installation: string;
let versions: string;
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'versions-'));
  installation = path.join(directory, 'installation');
  versions = path.join(directory, 'host', 'versions');
  mkdirSync(path.join(installation, 'lib'), { recursive: true });
  build('one');
});
afterEach(() => rmSync(directory, { recursive: true }));

function build(content: string): void {
  writeFileSync(path.join(installation, 'lib', 'libcuda.so.1'), `library ${content}`);
  writeFileSync(path.join(installation, 'nvidia-virtual-worker'), `worker ${content}`);
  chmodSync(path.join(installation, 'nvidia-virtual-worker'), 0o755);
}

/** Sets an old modification time. */
function age(name: string): void {
  utimesSync(path.join(versions, name), new Date(0), new Date(0));
}

test('a build is installed atomically, under a name derived from its content', () => {
  const { name, library, directory: installed } = installVersion(installation, versions);
  expect(name).toMatch(/^[0-9a-f]{16}$/);
  expect(readdirSync(versions)).toEqual([name]);
  expect(readFileSync(library, 'utf8')).toBe('library one');
  expect(statSync(path.join(installed, 'nvidia-virtual-worker')).mode & 0o777).toBe(0o755);
});

test('number 5: files that containers have mapped are overwritten by no build', () => {
  const first = installVersion(installation, versions);
  const { ino, ctimeMs } = statSync(first.library);
  expect(installVersion(installation, versions)).toEqual(first);
  build('two');
  const second = installVersion(installation, versions);
  expect(second.name).not.toBe(first.name);
  expect(statSync(first.library)).toMatchObject({ ino, ctimeMs });
  expect(readFileSync(first.library, 'utf8')).toBe('library one');
});

test('an installation that a kill interrupted is repeated', () => {
  const { name } = installVersion(installation, versions);
  rmSync(path.join(versions, name), { recursive: true });
  mkdirSync(path.join(versions, `.new-${name}`));
  expect(readFileSync(installVersion(installation, versions).library, 'utf8')).toBe('library one');
  expect(readdirSync(versions)).toEqual([name]);
});

test('a directory without the library is not a build', () => {
  rmSync(path.join(installation, 'lib'), { recursive: true });
  expect(() => installVersion(installation, versions)).toThrow(
    `${installation}/lib/libcuda.so.1 of this build cannot be read: it is missing.`,
  );
  expect(() => installVersion(path.join(directory, 'none'), versions)).toThrow(
    'no such file or directory',
  );
});

test('unused versions are removed, except those of containers and recent ones', () => {
  const names = ['one', 'two', 'three', 'four'].map((content) => {
    build(content);
    return installVersion(installation, versions);
  });
  const [used, unused, fresh, current] = names as [
    (typeof names)[0],
    (typeof names)[0],
    (typeof names)[0],
    (typeof names)[0],
  ];
  for (const { name } of [used, unused, current]) age(name);
  expect(removeOldVersions(versions, current, new Set([used.name]))).toEqual([unused.name]);
  expect(readdirSync(versions).sort()).toEqual([used.name, fresh.name, current.name].sort());
});

test('incomplete entries left by a kill are removed after a while', () => {
  const current = installVersion(installation, versions);
  const [made, removed, fresh] = [
    '.new-0000000000000001',
    '.gone-0000000000000002',
    '.gone-0000000000000003',
  ];
  for (const name of [made, removed, fresh])
    mkdirSync(path.join(versions, name, 'lib'), { recursive: true });
  for (const name of [made, removed]) age(name);
  expect(removeOldVersions(versions, current, new Set()).sort()).toEqual([removed, made]);
  expect(readdirSync(versions).sort()).toEqual([fresh, current.name].sort());
});

test('versionsInUse() returns those of the grants; a grant without a version may use any', () => {
  const state = path.join(directory, 'state');
  mkdirSync(path.join(state, 'allocations', '0011223344556677'), { recursive: true });
  expect(versionsInUse(state)).toEqual(new Set());
  prepareGrant(state, ['a-00'], '0000000000000001');
  prepareGrant(state, ['a-01'], '0000000000000001');
  expect(versionsInUse(state)).toEqual(new Set(['0000000000000001']));
  prepareGrant(state, ['a-02']);
  expect(versionsInUse(state)).toBeUndefined();
});
