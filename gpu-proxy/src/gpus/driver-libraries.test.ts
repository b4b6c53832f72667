import { mkdirSync, readdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { linkDriver } from './driver-libraries.js';

const HOME = '/run/driver/usr/lib64';
const PARTS = [
  'libcuda.so.1',
  'libcuda.so.570.1',
  'libnvidia-ml.so.1',
  'libnvidia-ptxjitcompiler.so.1',
  'libcudadebugger.so.1',
];
const OTHERS = ['libc.so.6', 'libcudart.so.12', 'libnvidia-container', 'libstdc++.so.6'];

let root: string;
let links: string;

beforeEach(() => {
  root = makePrivateDirectory();
  links = path.join(root, 'driver');
});
afterEach(() => removePrivateDirectory(root));

function install(home: string, names: readonly string[]): void {
  mkdirSync(path.join(root, home), { recursive: true });
  for (const name of names) writeFileSync(path.join(root, home, name), '');
}

function linked(): Record<string, string> {
  return Object.fromEntries(
    readdirSync(links).map((name) => [name, readlinkSync(path.join(links, name))]),
  );
}

function linksTo(home: string, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, `${home}/${name}`]));
}

test.each([HOME, '/home/kubernetes/bin/nvidia/lib64', '/usr/local/nvidia/lib64'])(
  'the libraries of a driver in %s are linked, and no others of that directory',
  (home) => {
    install(home, [...PARTS, ...OTHERS]);
    expect(linkDriver({ kind: 'real', driver: `${home}/libcuda.so.1` }, links, root)).toBe(links);
    expect(linked()).toEqual(linksTo(home, PARTS));
  },
);

test('links to another driver are replaced', () => {
  mkdirSync(links);
  symlinkSync('/old/libcuda.so.1', path.join(links, 'libcuda.so.1'));
  symlinkSync('/old/libcuda.so.1', path.join(links, 'libcuda.so.470.1'));
  writeFileSync(path.join(links, '.new-libcuda.so.1'), '');
  install(HOME, PARTS);
  for (let i = 0; i < 2; i++) {
    linkDriver({ kind: 'real', driver: `${HOME}/libcuda.so.1` }, links, root);
    expect(linked()).toEqual(linksTo(HOME, PARTS));
  }
});

test.each([
  { kind: 'real', driver: '/usr/lib/x86_64-linux-gnu/libcuda.so.1' },
  { kind: 'real', driver: '/usr/lib64/libcuda.so.1' },
  { kind: 'simulated', driver: '/opt/libsimulator-cuda.so.1' },
] as const)('the loader finds $driver by default', (backend) => {
  expect(linkDriver(backend, links, root)).toBeUndefined();
});
