import { appendFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { LineFollower } from './line-follower.js';

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

test('lines are complete, from the first one on, however they were written', () => {
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

test('a limited file stays small, and appended lines are read', () => {
  appendFileSync(file, `${'x'.repeat(3_000_000)}\n`);
  while (follower.read());
  follower.limit(4_000_000);
  expect(statSync(file).size).toBeGreaterThan(3_000_000);
  follower.limit(1_000_000);
  expect(statSync(file).size).toBe(0);
  appendFileSync(file, 'later\n');
  follower.finish();
  expect(lines.at(-1)).toBe('later');
});

test('a part of a large file is read at once, the rest later', () => {
  const many = Array.from({ length: 100_000 }, (_, i) => `line ${i}`);
  appendFileSync(file, `ond\n${many.join('\n')}\n`);
  expect(follower.read()).toBe(true);
  expect(lines.length).toBeLessThan(many.length / 2);
  while (follower.read());
  expect(lines).toEqual(['first', 'second', ...many]);
});

test('the first part of an endless line is passed on, then the next line', () => {
  appendFileSync(file, 'x'.repeat(3_000_000));
  while (follower.read());
  appendFileSync(
    file,
    `${'x'.repeat(100)}\nnext\n${'y'.repeat(70_000)}\nlast\n${'z'.repeat(70_000)}`,
  );
  follower.finish();
  expect(lines).toEqual([
    'first',
    `sec${'x'.repeat(65_533)}`,
    'next',
    'y'.repeat(65_536),
    'last',
    'z'.repeat(65_536),
  ]);
});

test.each([50_000, 100_000])(
  'unread parts of a truncated file do not become part of the next line (%d)',
  (most) => {
    appendFileSync(file, `ond\n${'x'.repeat(400_000)}`);
    follower.read();
    follower.limit(most);
    expect(statSync(file).size).toBe(0);
    appendFileSync(file, 'later\n');
    follower.finish();
    expect(lines.at(-1)).toBe('later');
  },
);
