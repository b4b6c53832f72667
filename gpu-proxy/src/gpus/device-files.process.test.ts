import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { makeDeviceFiles } from './device-files.js';

let directory: string;
beforeEach(() => {
  directory = makePrivateDirectory();
});
afterEach(() => removePrivateDirectory(directory));

test('each GPU that the kernel module knows gets its device', () => {
  const gpus = path.join(directory, 'gpus');
  for (const [address, minor] of [
    ['0000:01:00.0', 0],
    ['0000:41:00.0', 3],
  ]) {
    mkdirSync(path.join(gpus, String(address)), { recursive: true });
    const lines = `Model: \t\t NVIDIA H200\nDevice Minor: \t ${minor}\n`;
    writeFileSync(path.join(gpus, String(address), 'information'), lines);
  }
  const file = path.join(directory, 'nvidia-modprobe');
  writeFileSync(file, `#!/bin/sh\necho "$@" >>${directory}/ran\n`, { mode: 0o755 });
  expect(makeDeviceFiles({ file, command: [file, []] }, gpus)).toBeUndefined();
  expect(readFileSync(path.join(directory, 'ran'), 'utf8')).toBe('-c 255\n-c 0 -c 3\n-u -c 0\n');
});
