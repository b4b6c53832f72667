import { existsSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { makePrivateDirectory, removePrivateDirectory } from './private-directory.js';

test('makePrivateDirectory() makes one that only its owner can enter, in the first place that works', () => {
  const directory = makePrivateDirectory(['/nonexistent', tmpdir()]);
  expect(path.dirname(directory)).toBe(tmpdir());
  expect(path.basename(directory)).toMatch(/^nvidia-virtual-/);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  writeFileSync(path.join(directory, 'file'), '');
  removePrivateDirectory(directory);
  expect(existsSync(directory)).toBe(false);
});

test('makePrivateDirectory() says where it could not', () => {
  expect(() => makePrivateDirectory(['/nonexistent'])).toThrow(
    'No private directory can be made in /nonexistent: no such file or directory.',
  );
});
