import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Backend, checkNode, listGpus, type NodeFiles } from './node-check.js';

const OPEN =
  'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (root)\n';
const CLOSED =
  'NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.06  Wed Jun 26 06:46 2024\n';

let root: string;
/** Exists, without a label of SELinux. */
let directory: string;
let files: NodeFiles;

/** A node with a driver, cgroup v2, and without SELinux. */
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'node-check-'));
  directory = path.join(root, 'var', 'lib', 'ours');
  mkdirSync(directory, { recursive: true });
  files = {
    driver: path.join(root, 'nvidia'),
    mounts: path.join(root, 'mountinfo'),
    fileSystems: path.join(root, 'fs'),
  };
  write('nvidia/version', OPEN);
  write('mountinfo', mount('/', 'rw'));
  write('fs/cgroup/cgroup.controllers', 'cpu memory');
});
afterEach(() => rmSync(root, { recursive: true }));

function write(name: string, text: string): void {
  const file = path.join(root, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}

const mount = (point: string, flags: string) =>
  `36 35 98:0 / ${point} ${flags} shared:1 - ext4 /dev/sda1 rw\n`;
const codes = (backend: Backend = 'real') =>
  checkNode({ node: 'gpu-7', backend, directory }, files).map(({ code }) => code);

test('a node that has everything lacks nothing', () => {
  expect(codes()).toEqual([]);
});

test.each([
  ['no driver', undefined, ['DRIVER_MISSING']],
  ['an old driver', CLOSED, ['DRIVER_OLD']],
  ['a driver that is new enough', CLOSED.replace('535', '550'), []],
])('%s', (_, version, expected) => {
  if (version === undefined) rmSync(files.driver, { recursive: true });
  else write('nvidia/version', version);
  expect([codes(), codes('auto'), codes('simulated')]).toEqual([expected, [], []]);
});

test.each<[string, (point: (name: string) => string) => string, string[]]>([
  ['it', (at) => mount(at('var'), 'rw,noexec'), ['DIRECTORY_NOEXEC']],
  ['one below', (at) => mount(at('var'), 'rw,noexec') + mount(at('var/lib'), 'rw'), []],
  [
    'a later one at the same point',
    (at) => mount(at('var/lib'), 'rw') + mount(at('var/lib'), 'rw,noexec'),
    ['DIRECTORY_NOEXEC'],
  ],
  ['others', (at) => mount(at('var/li'), 'rw,noexec') + mount(at('home'), 'noexec'), []],
])('the mount of the directory decides whether it may execute: %s', (_, mounts, expected) => {
  write('mountinfo', mount('/', 'rw') + mounts((name) => path.join(root, name)));
  expect(codes()).toEqual(expected);
});

test.each([
  ['1', ['DIRECTORY_LABEL']],
  ['0', []],
])('SELinux whose enforcing is %s, before and after the installation', (enforce, expected) => {
  write('fs/selinux/enforce', enforce);
  expect(codes()).toEqual(expected);
  rmSync(directory, { recursive: true });
  expect(codes()).toEqual([]);
});

test('cgroup v1 suffices, none does not', () => {
  rmSync(path.join(files.fileSystems, 'cgroup'), { recursive: true });
  expect(codes()).toEqual(['CGROUPS_MISSING']);
  write('fs/cgroup/memory/tasks', '');
  expect(codes()).toEqual([]);
});

test('every sentence names the node and a command', () => {
  rmSync(files.driver, { recursive: true });
  write('mountinfo', mount('/', 'rw,noexec'));
  write('fs/selinux/enforce', '1');
  rmSync(path.join(files.fileSystems, 'cgroup'), { recursive: true });
  const found = checkNode({ node: 'gpu-7', backend: 'real', directory }, files);
  expect(found).toHaveLength(4);
  for (const { message } of found) expect(message).toMatch(/gpu-7.*`[^`]+`/);
});

test('GPUs are listed by the kernel module, in the order of their buses', () => {
  const uuid = (last: number) => `GPU-00000000-0000-0000-0000-00000000000${last}`;
  write('nvidia/gpus/0000:81:00.0/information', `GPU UUID: \t ${uuid(2)}\n`);
  write('nvidia/gpus/0000:01:00.0/information', `Model: A\nGPU UUID: \t ${uuid(1)}\n`);
  expect(listGpus(files)).toEqual([uuid(1), uuid(2)]);
});
