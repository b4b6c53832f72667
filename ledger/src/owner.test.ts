import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ownerOf } from './owner.js';

let directories: string[];

beforeEach(() => {
  directories = [1, 2].map(() => mkdtempSync(path.join(tmpdir(), 'nvidia-virtual-ledger-')));
});
afterEach(() => {
  for (const directory of directories) rmSync(directory, { recursive: true });
});

test('ownerOf() is stable for a directory and differs between directories', () => {
  const [first, second] = directories as [string, string];
  const owner = ownerOf(first);
  expect(owner).toMatch(/^[0-9a-f]{32}$/);
  expect(ownerOf(first)).toBe(owner);
  expect(ownerOf(second)).not.toBe(owner);
});

test('ownerOf() creates one private file', () => {
  const [directory] = directories as [string];
  ownerOf(directory);
  ownerOf(directory);
  expect(readdirSync(directory)).toEqual(['ledger-owner']);
  expect(statSync(path.join(directory, 'ledger-owner')).mode & 0o777).toBe(0o600);
});
