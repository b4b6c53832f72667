import { existsSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { makePrivateDirectory } from './private-directory.js';
import { removePrivateDirectory } from './testing/private-directory.js';

test("makePrivateDirectory() makes an owner's directory in the first usable parent", () => {
  const directory = makePrivateDirectory(['/nonexistent', tmpdir()]);
  expect(path.dirname(directory)).toBe(tmpdir());
  expect(path.basename(directory)).toMatch(/^nvidia-virtual-/);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  writeFileSync(path.join(directory, 'file'), '');
  removePrivateDirectory(directory);
  expect(existsSync(directory)).toBe(false);
});

test('makePrivateDirectory() names the parent in its error', () => {
  expect(() => makePrivateDirectory(['/nonexistent'])).toThrow(
    'Cannot create a private directory in /nonexistent: no such file or directory.',
  );
});
