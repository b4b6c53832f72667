import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { findProgram } from './program.js';

let directory: string;

beforeEach(() => {
  directory = makePrivateDirectory();
  mkdirSync(path.join(directory, 'folder'));
  writeFileSync(path.join(directory, 'data'), '');
  writeFileSync(path.join(directory, 'tool'), '#!/bin/sh\n');
  chmodSync(path.join(directory, 'tool'), 0o755);
});
afterEach(() => removePrivateDirectory(directory));

test('findProgram() searches PATH, and skips files that cannot be run', () => {
  expect(findProgram('tool', `/nonexistent:${directory}`)).toBe(path.join(directory, 'tool'));
});

test('findProgram() reports why a program cannot be run', () => {
  const at = (name: string) => path.join(directory, name);
  expect(() => findProgram('nosuch', directory)).toThrow(
    'nosuch was not found in PATH. Check the name, or give a path.',
  );
  expect(() => findProgram(at('nosuch'))).toThrow(`${at('nosuch')} was not found. Check the name`);
  expect(() => findProgram(at('data/below'))).toThrow(`${at('data/below')} was not found.`);
  expect(() => findProgram(at('data'))).toThrow(
    `${at('data')} is not marked as executable and cannot be executed. Run \`chmod +x`,
  );
  expect(() => findProgram('data', directory)).toThrow('is not marked as executable');
  expect(() => findProgram(at('folder'))).toThrow(
    `${at('folder')} is a directory and cannot be executed.`,
  );
});

test('findProgram() returns the exit statuses of a shell', () => {
  expect(() => findProgram('nosuch', directory)).toThrow(
    expect.objectContaining({ exitStatus: 127 }),
  );
  expect(() => findProgram('data', directory)).toThrow(
    expect.objectContaining({ exitStatus: 126 }),
  );
});
