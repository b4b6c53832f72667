import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { runCommand } from '../command.js';
import { previousRevision } from './revision.js';

const CI = { CI: 'true' };
const AUTHOR = ['-c', 'user.name=somebody', '-c', 'user.email=somebody@localhost'];

let directory: string;
let full: string;

beforeEach(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'revision-'));
  full = path.join(directory, 'full');
  await git(directory, 'init', '--quiet', full);
});
afterEach(() => rmSync(directory, { recursive: true }));

async function git(cwd: string, ...args: readonly string[]): Promise<string> {
  const { status, output } = await runCommand('git', args, { cwd });
  expect([args, status, output]).toEqual([args, 0, expect.anything()]);
  return output.trim();
}

/** @returns the commit's id */
async function commit(file: string): Promise<string> {
  mkdirSync(path.join(full, path.dirname(file)), { recursive: true });
  writeFileSync(path.join(full, file), '');
  await git(full, 'add', '--all');
  await git(full, ...AUTHOR, 'commit', '--quiet', '--message', file);
  return git(full, 'rev-parse', '--short=12', 'HEAD');
}

/** A clone of only the last commit. */
async function shallow(): Promise<string> {
  const clone = path.join(directory, 'shallow');
  await git(directory, 'clone', '--quiet', '--depth', '1', `file://${full}`, clone);
  return clone;
}

describe('the commit before', () => {
  test('is the parent of HEAD, or HEAD if files have changed', async () => {
    const [first, second] = [await commit('toolchain/src/images/main.ts'), await commit('other')];
    expect(await previousRevision(full, CI)).toMatchObject({ id: first });
    writeFileSync(path.join(full, 'other'), 'changed');
    expect(await previousRevision(full, CI)).toMatchObject({ id: second });
  });

  test('is another one by its name', async () => {
    const first = await commit('toolchain/src/images/main.ts');
    for (const file of ['second', 'third']) await commit(file);
    expect(await previousRevision(full, CI, first)).toMatchObject({ id: first });
  });

  test.each([
    ['history begins here', ['toolchain/src/images/main.ts'], /There is no commit HEAD\^/],
    [
      'it could not build images',
      ['other', 'toolchain/src/images/main.ts'],
      /Commit [0-9a-f]{12} \(HEAD\^\) cannot build images/,
    ],
  ])('is missing with a reason if %s, and CI fails', async (_, files, sentence) => {
    for (const file of files) await commit(file);
    expect(await previousRevision(full, {})).toEqual({ missing: expect.stringMatching(sentence) });
    await expect(previousRevision(full, CI)).rejects.toThrow(sentence);
  });

  test('may be missing in a shallow clone, also in CI', async () => {
    for (const file of ['toolchain/src/images/main.ts', 'other']) await commit(file);
    expect(await previousRevision(await shallow(), CI)).toEqual({
      missing: expect.stringContaining('The clone is shallow and has no HEAD^'),
    });
  });
});
