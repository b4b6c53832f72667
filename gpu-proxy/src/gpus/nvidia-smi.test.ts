import { mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { pino } from 'pino';
import { copyNvidiaSmi } from './nvidia-smi.js';

let directory: string;
let root: string;
let copy: string;
let log: string;
beforeEach(() => {
  log = '';
  directory = makePrivateDirectory();
  root = path.join(directory, 'root');
  copy = path.join(directory, 'nvidia-smi');
  mkdirSync(path.join(root, 'usr/bin'), { recursive: true });
  mkdirSync(path.join(root, 'etc/alternatives'), { recursive: true });
});
afterEach(() => removePrivateDirectory(directory));

function run(
  driver = '/usr/lib/x86_64-linux-gnu/libcuda.so.1',
  kind: 'real' | 'simulated' = 'real',
) {
  const write = (line: string) => {
    log += line;
  };
  copyNvidiaSmi({ kind, driver }, directory, root, pino({}, { write }));
}

test('copyNvidiaSmi() copies the file of the host, and a newer one over it', () => {
  writeFileSync(path.join(root, 'usr/bin/nvidia-smi'), 'one');
  run();
  expect(readFileSync(copy, 'utf8')).toBe('one');
  expect(statSync(copy).mode & 0o777).toBe(0o755);
  writeFileSync(path.join(root, 'usr/bin/nvidia-smi'), 'two');
  run('/usr/lib64/libcuda.so.1');
  expect(readFileSync(copy, 'utf8')).toBe('two');
});

test('copyNvidiaSmi() follows links within the root directory of the host', () => {
  writeFileSync(path.join(root, 'usr/bin/smi'), 'linked');
  symlinkSync('/etc/alternatives/nvidia-smi', path.join(root, 'usr/bin/nvidia-smi'));
  symlinkSync('../../usr/bin/smi', path.join(root, 'etc/alternatives/nvidia-smi'));
  run();
  expect(readFileSync(copy, 'utf8')).toBe('linked');
});

test('copyNvidiaSmi() keeps an earlier copy, and copies nothing without a driver', () => {
  writeFileSync(copy, 'earlier');
  run();
  expect(log).toContain(
    'no new nvidia-smi: /usr/lib/bin/nvidia-smi and /usr/bin/nvidia-smi do not exist.',
  );
  log = '';
  writeFileSync(path.join(root, 'usr/bin/nvidia-smi'), 'one');
  run(undefined, 'simulated');
  expect(log).toBe('');
  expect(readFileSync(copy, 'utf8')).toBe('earlier');
  rmSync(copy);
  symlinkSync('nvidia-smi', path.join(root, 'etc/nvidia-smi'));
  rmSync(path.join(root, 'usr/bin/nvidia-smi'));
  symlinkSync('/etc/nvidia-smi', path.join(root, 'usr/bin/nvidia-smi'));
  run();
  expect(statSync(copy, { throwIfNoEntry: false })).toBeUndefined();
});
