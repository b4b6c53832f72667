import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { ExportTable, SHARING } from './export-table.js';
import { QuotaFile } from './quota.js';

let directory: string;
let file: string;

beforeEach(() => {
  directory = makePrivateDirectory();
  file = path.join(directory, SHARING, 'exports');
  ExportTable.make(directory);
});
afterEach(() => removePrivateDirectory(directory));

/** Writes an entry as a worker does. @param marks by slot: 1 for a user, 2 for the owner */
function write(index: number, bytes: number, owner: number, marks: Record<number, number>): void {
  const content = readFileSync(file);
  const entry = content.subarray(256 + 384 * index);
  entry.writeBigUInt64LE(BigInt(bytes), 16);
  entry.writeUInt32LE(owner, 24);
  for (const [slot, mark] of Object.entries(marks)) entry[96 + Number(slot)] = mark;
  content.writeUInt32LE(index + 1, 12);
  writeFileSync(file, content);
}

test('a new table has the header that workers check, and workers cannot replace it', () => {
  const bytes = readFileSync(file);
  expect(bytes.subarray(0, 4).toString('latin1')).toBe('1XVN'); // little endian "NVX1"
  expect(bytes.readUInt32LE(4)).toBe(1);
  expect(bytes.length).toBe(256 + 4096 * 384);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(path.join(directory, SHARING)).mode & 0o7777).toBe(0o1770);
});

test('cleaning removes what workers left beside the table', () => {
  mkdirSync(path.join(directory, SHARING, 'left/behind'), { recursive: true });
  writeFileSync(path.join(directory, SHARING, 'driver-0'), '');
  ExportTable.clean(directory);
  expect(readdirSync(path.join(directory, SHARING))).toEqual(['exports']);
});

test('memory is charged to nobody as long as its owner holds it', () => {
  const table = ExportTable.open(directory) as ExportTable;
  write(0, 100, 3, { 3: 2, 5: 1 });
  expect(table.readOrphaned()).toBe(0);
  table.clearSlots([3]);
  expect(table.readOrphaned()).toBe(100);
  table.clearSlots([5]);
  expect(table.readOrphaned()).toBe(0);
  table.close();
});

test('the end of an owner moves its charge from the slot to the table, once', () => {
  const quota = QuotaFile.create(path.join(directory, 'quota'), 0);
  const [owner, user] = [quota.takeSlot() as number, quota.takeSlot() as number];
  const content = readFileSync(quota.path);
  content.writeBigUInt64LE(100n, 256 + 32 * owner);
  writeFileSync(quota.path, content);
  write(0, 100, owner, { [owner]: 2, [user]: 1 });
  write(1, 50, user, { [user]: 2 });
  expect(quota.readUsed()).toBe(100);
  quota.releaseSlot(owner);
  expect(quota.readUsed()).toBe(100);
  quota.releaseSlot(user);
  expect(quota.readUsed()).toBe(0);
  quota.close();
});

test('an allocation of a version without exports has none', () => {
  rmSync(path.join(directory, SHARING), { recursive: true });
  expect(ExportTable.open(directory)).toBeUndefined();
  mkdirSync(path.join(directory, SHARING));
  expect(ExportTable.open(directory)).toBeUndefined();
});
