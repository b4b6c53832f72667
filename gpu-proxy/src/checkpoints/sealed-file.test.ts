import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { KEY_BYTES, SealedReader, SealedWriter } from './sealed-file.js';

const MiB = 2 ** 20;
const SALT = 32;
/** A chunk, with its length and its tag. */
const SEALED = 4 + MiB + 16;

const key = randomBytes(KEY_BYTES);
let directory: string;
let file: string;

beforeEach(() => {
  directory = makePrivateDirectory();
  file = path.join(directory, 'file');
});
afterEach(() => removePrivateDirectory(directory));

async function write(...parts: readonly Buffer[]): Promise<void> {
  const writer = await SealedWriter.create(file, key, 'one');
  for (const part of parts) await writer.write(part);
  await writer.finish();
  await writer.close();
}

async function read(sizes: readonly number[], name = 'one'): Promise<Buffer> {
  const reader = await SealedReader.open(file, key, name);
  try {
    const parts: Buffer[] = [];
    for (const size of sizes) parts.push(await reader.read(size));
    reader.finish();
    return Buffer.concat(parts);
  } finally {
    await reader.close();
  }
}

test.each([9, 100, MiB - 1, MiB, MiB + 1, 3 * MiB, 3 * MiB + 7])('%i bytes', async (bytes) => {
  const content = randomBytes(bytes);
  await write(content.subarray(0, bytes >> 1), content.subarray(bytes >> 1));
  expect(readFileSync(file).includes(content.subarray(0, 64))).toBe(false);
  for (const sizes of [[bytes], [bytes >> 2, bytes - (bytes >> 2)]])
    expect((await read(sizes)).equals(content)).toBe(true);
});

test('nothing can be changed, exchanged, left out or added', async () => {
  const size = 2 * MiB + 5;
  await write(randomBytes(size));
  const whole = readFileSync(file);
  const [salt, first, second, last] = [
    whole.subarray(0, SALT),
    whole.subarray(SALT, SALT + SEALED),
    whole.subarray(SALT + SEALED, SALT + 2 * SEALED),
    whole.subarray(SALT + 2 * SEALED),
  ] as [Buffer, Buffer, Buffer, Buffer];
  const flipped = Buffer.from(whole);
  flipped.writeUInt8(flipped.readUInt8(SEALED + 9) ^ 1, SEALED + 9);
  const huge = Buffer.from(whole);
  huge.writeUInt32BE(2 ** 31, SALT);
  const wrong: readonly [Buffer, number][] = [
    [flipped, size],
    [huge, size],
    [Buffer.concat([salt, second, first, last]), size],
    [Buffer.concat([salt, first, second]), 2 * MiB],
    [Buffer.concat([salt, first, last]), MiB + 5],
    [Buffer.concat([salt, first, second, last, last]), size],
    [whole.subarray(0, -1), size],
    [Buffer.concat([randomBytes(SALT), whole.subarray(SALT)]), size],
    [salt, 1],
    [Buffer.alloc(0), 1],
  ];
  for (const [content, bytes] of wrong) {
    writeFileSync(file, content);
    await expect(read([bytes])).rejects.toThrow('the file is damaged');
  }
  writeFileSync(file, whole);
  await expect(read([size + 1])).rejects.toThrow('the file is damaged');
  await expect(read([size - 1])).rejects.toThrow('the file is damaged');
  expect((await read([size])).length).toBe(size);
});

test('a file has a key of its own', async () => {
  await write(Buffer.from('content'));
  await expect(read([7], 'other')).rejects.toThrow('the key is not the right one');
  const before = readFileSync(file);
  rmSync(file);
  await write(Buffer.from('content'));
  expect(readFileSync(file).subarray(SALT)).not.toEqual(before.subarray(SALT));
});

test('no link is followed, and no file replaced', async () => {
  await write(Buffer.from('content'));
  const link = path.join(directory, 'link');
  symlinkSync(file, link);
  await expect(SealedReader.open(link, key, 'one')).rejects.toThrow('ELOOP');
  await expect(SealedWriter.create(file, key, 'one')).rejects.toThrow('EEXIST');
});
