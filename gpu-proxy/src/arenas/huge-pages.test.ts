import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { DIRECT } from '../host/launcher.js';
import { allowHugePages } from './huge-pages.js';

const SETTING = 'sys/kernel/mm/transparent_hugepage/shmem_enabled';
let root: string;
let said: string[];

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'huge-pages-'));
  said = [];
});
afterEach(() => rmSync(root, { recursive: true }));

function allow(): void {
  const logger = pino({}, { write: (line: string) => void said.push(line) });
  allowHugePages({ ...DIRECT, seen: (file) => path.join(root, file) }, logger);
}

/** What the setting of the host is afterwards. */
function allowedFrom(setting: string): string {
  mkdirSync(path.dirname(path.join(root, SETTING)), { recursive: true });
  writeFileSync(path.join(root, SETTING), setting);
  allow();
  return readFileSync(path.join(root, SETTING), 'utf8');
}

test('where no memory file may have huge pages, those may that ask', () => {
  expect(allowedFrom('always within_size advise [never] deny force\n')).toBe('advise');
  expect(said).toEqual([expect.stringContaining('was never and is advise now')]);
});

test.each(['[always] within_size advise never deny force', 'always advise never [deny] force'])(
  'what an administrator has chosen stays: %s',
  (setting) => {
    expect(allowedFrom(setting)).toBe(setting);
    expect(said).toEqual([]);
  },
);

test('a kernel without the setting is no obstacle', () => {
  allow();
  expect(said).toEqual([expect.stringContaining('Arenas get no huge pages')]);
});
