import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isCurrent } from './newer.js';

test('isCurrent() compares an output with all its inputs', () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'newer-'));
  const file = (name: string, seconds: number) => {
    writeFileSync(path.join(directory, name), '');
    utimesSync(path.join(directory, name), seconds, seconds);
    return path.join(directory, name);
  };
  const [old, output, recent] = [file('old', 1000), file('output', 2000), file('recent', 3000)];
  expect(isCurrent(output, [old])).toBe(true);
  expect(isCurrent(output, [old, recent])).toBe(false);
  expect(isCurrent(output, [path.join(directory, 'missing')])).toBe(false);
  expect(isCurrent(path.join(directory, 'missing'), [old])).toBe(false);
  rmSync(directory, { recursive: true });
});
