import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { Addon } from '../host/addon.js';
import { locateInstallation } from '../host/installation.js';
import { pack, readBegin, unpack } from './images.js';
import { KEY_BYTES, SealedReader, SealedWriter } from './sealed-file.js';

const key = Buffer.alloc(KEY_BYTES, 1);
let directory: string;

beforeEach(() => {
  directory = makePrivateDirectory();
});
afterEach(() => removePrivateDirectory(directory));

/** @returns what comes out of a directory with this file, and the log of CRIU */
async function comesBack(name: string): Promise<string> {
  const [from, to] = ['from', 'to'].map((each) => path.join(directory, each)) as [string, string];
  for (const each of [from, to]) mkdirSync(each);
  for (const each of ['one.log', name]) writeFileSync(path.join(from, each), 'content');
  const file = path.join(directory, 'file');
  const writer = await SealedWriter.create(file, key, 'one');
  try {
    const addon = new Addon(locateInstallation().addon);
    await pack(from, [], { writer, addon, admit: (bytes) => expect(bytes).toBe(4096) });
    await writer.finish();
  } finally {
    await writer.close();
  }
  const reader = await SealedReader.open(file, key, 'one');
  expect(await readBegin(reader)).toBe(4096);
  await unpack(reader, to, {
    makeArena: () => Promise.reject(new Error('it has no arena')),
    populate: () => Promise.reject(new Error('it has no large file')),
  });
  await reader.close();
  return readFileSync(path.join(to, name), 'utf8');
}

test('the files of CRIU come back', async () => {
  expect(await comesBack('core-12.img')).toBe('content');
});

test('a file of another kind is not left out', async () => {
  await expect(comesBack('an other')).rejects.toThrow('a file of another kind: an other');
});
