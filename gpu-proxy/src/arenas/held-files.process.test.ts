import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { Addon } from '../host/addon.js';
import { locateInstallation } from '../host/installation.js';
import { HeldFiles } from './held-files.js';
import { MemoryFile } from './memory-file.js';

const SIZE = 4096;
const addon = new Addon(locateInstallation().addon);
const all = () => true;

let directory: string;
let record: string;

beforeEach(() => {
  directory = makePrivateDirectory();
  record = path.join(directory, 'arenas.json');
});
afterEach(() => removePrivateDirectory(directory));

test('a file counts until it is freed, also for the next gpu-proxy', async () => {
  const held = new HeldFiles(record, addon);
  const [one, other] = [MemoryFile.create(SIZE, addon), MemoryFile.create(2 * SIZE, addon)];
  held.add('a', one);
  held.add('b', other);
  expect([held.bytes(all), held.bytes((id) => id === 'b')]).toEqual([3 * SIZE, 2 * SIZE]);

  const next = new HeldFiles(record, addon);
  one.close();
  for (const each of [held, next]) await each.whenFreed(one.handle);
  for (const each of [held, next]) await until(() => each.bytes(all) === 2 * SIZE);
  other.close();
  await until(() => next.bytes(all) === 0);
  expect(new HeldFiles(record, addon).bytes(all)).toBe(0);
});

test('without the right to find files, they count until no session is left', () => {
  writeFileSync(record, JSON.stringify([{ allocation: 'a', size: SIZE, handle: '00' }]));
  const forbidden = Object.assign(Object.create(addon) as Addon, {
    findMemoryFile: () => {
      throw new Error('EPERM');
    },
  });
  const held = new HeldFiles(record, forbidden);
  held.forgetUnfound('b');
  expect(held.bytes(all)).toBe(SIZE);
  held.forgetUnfound('a');
  expect(held.bytes(all)).toBe(0);
});

test('an empty record has no files', () => {
  writeFileSync(record, '');
  expect(new HeldFiles(record, addon).bytes(all)).toBe(0);
});
