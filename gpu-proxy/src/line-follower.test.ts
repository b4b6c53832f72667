import { appendFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { LineFollower } from './line-follower.js';
import { makePrivateDirectory, removePrivateDirectory } from './private-directory.js';

let directory: string;
let file: string;
let lines: string[];
let follower: LineFollower;

beforeEach(() => {
  directory = makePrivateDirectory();
  file = path.join(directory, 'report');
  lines = [];
  writeFileSync(file, 'first\nsec');
  follower = new LineFollower(file, (line) => lines.push(line));
});
afterEach(() => removePrivateDirectory(directory));

test('lines come whole, from the first one on, whatever pieces they are written in', () => {
  follower.read();
  expect(lines).toEqual(['first']);
  appendFileSync(file, 'ond\nthé'.slice(0, -1));
  appendFileSync(file, Buffer.from('é').subarray(0, 1));
  follower.read();
  appendFileSync(file, Buffer.from('é').subarray(1));
  follower.finish();
  expect(lines).toEqual(['first', 'second', 'thé']);
});

test('more than one chunk at a time', () => {
  const many = Array.from({ length: 30_000 }, (_, i) => `line ${i}`);
  appendFileSync(file, `ond\n${many.join('\n')}\n`);
  follower.finish();
  expect(lines).toEqual(['first', 'second', ...many]);
});

test('a file that is limited stays small, and what is appended later is read', () => {
  appendFileSync(file, `${'x'.repeat(3_000_000)}\n`);
  follower.read();
  follower.limit(4_000_000);
  expect(statSync(file).size).toBeGreaterThan(3_000_000);
  follower.limit(1_000_000);
  expect(statSync(file).size).toBe(0);
  appendFileSync(file, 'later\n');
  follower.finish();
  expect(lines.at(-1)).toBe('later');
});
