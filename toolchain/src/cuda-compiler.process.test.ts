import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { installedToolkit } from './cuda-compiler.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'toolkit-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function installNvcc(release: string): void {
  mkdirSync(path.join(root, 'bin'));
  writeFileSync(
    path.join(root, 'bin', 'nvcc'),
    `#!/bin/sh\necho 'Cuda compilation tools, release ${release}, V${release}.88'\n`,
  );
  chmodSync(path.join(root, 'bin', 'nvcc'), 0o755);
}

test('an installed toolkit is used', async () => {
  installNvcc('13.0');
  const parts = {
    nvcc: path.join(root, 'bin/nvcc'),
    include: path.join(root, 'include'),
    library: path.join(root, 'lib64'),
  };
  expect(await installedToolkit(root)).toEqual(parts);
});

test('a toolkit that is too old or missing is not used', async () => {
  expect(await installedToolkit(root)).toBeUndefined();
  installNvcc('12.9');
  expect(await installedToolkit(root)).toBeUndefined();
});
