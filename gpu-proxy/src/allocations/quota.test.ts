import { readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { MAX_SESSIONS } from '@nvidia-virtual/node-state/allocation-options';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { QuotaFile } from './quota.js';

let directory: string;
let quota: QuotaFile;

beforeEach(() => {
  directory = makePrivateDirectory();
  quota = QuotaFile.create(path.join(directory, 'quota'), 512 * 2 ** 20);
});
afterEach(() => removePrivateDirectory(directory));

test('a new file has the header that workers check, and nothing used', () => {
  const bytes = readFileSync(quota.path);
  expect(bytes.length).toBe(8192);
  expect(bytes.subarray(0, 4).toString('latin1')).toBe('1QVN'); // little endian "NVQ1"
  expect(bytes.readUInt32LE(4)).toBe(2);
  expect(bytes.readBigUInt64LE(8)).toBe(512n * 2n ** 20n);
  expect(bytes.subarray(16).every((byte) => byte === 0)).toBe(true);
  expect(statSync(quota.path).mode & 0o777).toBe(0o600);
});

test('the last slot lies within the file', () => {
  const slots = Array.from({ length: MAX_SESSIONS }, () => quota.takeSlot());
  expect(new Set(slots).size).toBe(MAX_SESSIONS);
  expect(quota.takeSlot()).toBeUndefined();
  quota.releaseSlot(MAX_SESSIONS - 1);
  expect(statSync(quota.path).size).toBe(8192);
  expect(quota.takeSlot()).toBe(MAX_SESSIONS - 1);
});

test('releaseSlot() clears the slot of a dead worker only', () => {
  const [first, second] = [quota.takeSlot() as number, quota.takeSlot() as number];
  const bytes = readFileSync(quota.path);
  for (const slot of [first, second]) {
    bytes.writeBigUInt64LE(100n, 256 + 32 * slot);
    bytes.writeBigUInt64LE(200n, 264 + 32 * slot);
    bytes.writeBigUInt64LE(50n, 272 + 32 * slot);
    bytes.writeUInt32LE(7, 280 + 32 * slot);
    bytes.writeUInt32LE(3, 284 + 32 * slot);
  }
  bytes.writeBigUInt64LE(300n, 128);
  writeFileSync(quota.path, bytes);
  quota.releaseSlot(first);
  expect(quota.readSlot(first)).toEqual({ used: 0, peak: 0, pinned: 0, handles: 0, threads: 0 });
  expect(quota.readSlot(second)).toEqual({
    used: 100,
    peak: 200,
    pinned: 50,
    handles: 7,
    threads: 3,
  });
  expect(quota.readPeak()).toBe(300);
});

test('create() refuses an existing file', () => {
  expect(() => QuotaFile.create(quota.path, 0)).toThrow('EEXIST');
});

test('the next gpu-proxy keeps the slots of live workers and clears the others', () => {
  const [first, second] = [quota.takeSlot() as number, quota.takeSlot() as number];
  const bytes = readFileSync(quota.path);
  for (const slot of [first, second]) bytes.writeBigUInt64LE(100n, 256 + 32 * slot);
  writeFileSync(quota.path, bytes);
  expect(quota.readUsed()).toBe(200);
  quota.close();
  const later = QuotaFile.open(quota.path);
  later.claimSlot(second);
  later.clearOthers();
  expect([later.readSlot(first).used, later.readSlot(second).used, later.readUsed()]).toEqual([
    0, 100, 100,
  ]);
  expect([later.takeSlot(), later.takeSlot()]).toEqual([first, second + 1]);
  later.close();
});

test('open() refuses a file that is not a quota file of this version', () => {
  const other = path.join(directory, 'other');
  writeFileSync(other, Buffer.alloc(8192));
  expect(() => QuotaFile.open(other)).toThrow('it is not a quota file of this version');
});
