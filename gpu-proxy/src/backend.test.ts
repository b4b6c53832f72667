import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { chooseBackend, hostMachine, type Machine } from './backend.js';
import type { Installation } from './installation.js';
import { makePrivateDirectory, removePrivateDirectory } from './private-directory.js';

let root: string;
let installation: Installation;

beforeEach(() => {
  root = makePrivateDirectory();
  for (const directory of ['ours', 'host', 'link']) mkdirSync(path.join(root, directory));
  for (const directory of ['ours', 'host']) writeFileSync(path.join(root, directory, 'libcuda.so.1'), '');
  symlinkSync('../ours/libcuda.so.1', path.join(root, 'link', 'libcuda.so.1'));
  writeFileSync(path.join(root, 'nvidiactl'), '');
  installation = {
    interposerDirectory: path.join(root, 'ours'),
    worker: 'w',
    arbiter: 'r',
    simulatedDriver: '/simulated.so',
    addon: 'a',
    launcher: 'l',
  };
});
afterEach(() => removePrivateDirectory(root));

function machine(...directories: string[]): Machine {
  return { controlDevice: path.join(root, 'nvidiactl'), libraryDirectories: () => directories.map((name) => path.join(root, name)) };
}

test('auto takes the real GPU where device and driver are there', () => {
  expect(chooseBackend('auto', installation, machine('missing', 'host'))).toEqual({
    kind: 'real',
    driver: path.join(root, 'host/libcuda.so.1'),
  });
});

test('our own libcuda.so.1 is never taken for the driver, nor a link to it', () => {
  expect(chooseBackend('real', installation, machine('ours', 'link', 'host')).driver).toBe(path.join(root, 'host/libcuda.so.1'));
  expect(chooseBackend('auto', installation, machine('ours', 'link'))).toEqual({ kind: 'simulated', driver: '/simulated.so' });
});

test('auto takes the simulated GPU where the device is missing', () => {
  const bare = { ...machine('host'), controlDevice: '/nonexistent/nvidiactl' };
  expect(chooseBackend('auto', installation, bare).kind).toBe('simulated');
});

test('simulated is simulated, whatever the machine has', () => {
  expect(chooseBackend('simulated', installation, machine('host')).kind).toBe('simulated');
});

test('real says what is missing', () => {
  const bare = { ...machine('host'), controlDevice: '/nonexistent/nvidiactl' };
  expect(() => chooseBackend('real', installation, bare)).toThrow(
    'The real GPU cannot be used: /nonexistent/nvidiactl: no such file or directory.',
  );
  expect(() => chooseBackend('real', installation, machine('missing'))).toThrow('libcuda.so.1 of the NVIDIA driver is not installed');
});

test('on a host that is seen from a container, the driver has the path that it has there', () => {
  for (const directory of ['dev', 'run/driver/usr/lib64']) mkdirSync(path.join(root, directory), { recursive: true });
  for (const file of ['dev/nvidiactl', 'run/driver/usr/lib64/libcuda.so.1']) writeFileSync(path.join(root, file), '');
  expect(chooseBackend('real', installation, hostMachine(root, '/run/driver'))).toEqual({
    kind: 'real',
    driver: '/run/driver/usr/lib64/libcuda.so.1',
  });
  expect(() => chooseBackend('real', installation, hostMachine(root, '/'))).toThrow('libcuda.so.1 of the NVIDIA driver is not installed');
});
