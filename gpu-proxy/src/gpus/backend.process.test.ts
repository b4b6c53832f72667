import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import type { Installation } from '../host/installation.js';
import { chooseBackend, hostMachine, type Machine } from './backend.js';

let root: string;
let installation: Installation;

beforeEach(() => {
  root = makePrivateDirectory();
  for (const directory of ['ours', 'host', 'link']) mkdirSync(path.join(root, directory));
  for (const directory of ['ours', 'host'])
    writeFileSync(path.join(root, directory, 'libcuda.so.1'), '');
  symlinkSync('../ours/libcuda.so.1', path.join(root, 'link', 'libcuda.so.1'));
  mkdirSync(path.join(root, 'dev'));
  writeFileSync(path.join(root, 'dev/nvidiactl'), '');
  installation = {
    interposerDirectory: path.join(root, 'ours'),
    worker: 'w',
    arbiter: 'r',
    simulatedDriver: '/simulated.so',
    addon: 'a',
    closer: 'c',
    arena: 'c',
    keeper: 'k',
    launcher: 'l',
  };
});
afterEach(() => removePrivateDirectory(root));

function machine(...directories: string[]): Machine {
  const libraryDirectories = () => directories.map((name) => path.join(root, name));
  return { ...host(root, '/'), libraryDirectories };
}

/** The machine below a directory, whose programs run as they are. */
function host(directory: string, driverRoot: string): Machine {
  return hostMachine(directory, driverRoot, (file) => [path.join(directory, file), []]);
}

test('auto selects the real GPU if device and driver exist', () => {
  expect(chooseBackend('auto', installation, machine('missing', 'host'))).toEqual({
    kind: 'real',
    driver: '/host/libcuda.so.1',
  });
});

test('our own libcuda.so.1 is never used as the driver, nor is a link to it', () => {
  expect(chooseBackend('real', installation, machine('ours', 'link', 'host')).driver).toBe(
    '/host/libcuda.so.1',
  );
  expect(chooseBackend('auto', installation, machine('ours', 'link'))).toEqual({
    kind: 'simulated',
    driver: '/simulated.so',
  });
});

test('auto selects the simulated GPU if the device is missing', () => {
  const bare = { ...machine('host'), deviceDirectories: ['/nonexistent'] };
  expect(chooseBackend('auto', installation, bare).kind).toBe('simulated');
});

test('simulated always selects the simulated GPU', () => {
  expect(chooseBackend('simulated', installation, machine('host')).kind).toBe('simulated');
});

test('real reports what is missing', () => {
  const bare = { ...machine('host'), deviceDirectories: ['/nonexistent'] };
  expect(() => chooseBackend('real', installation, bare)).toThrow(
    'The real GPU cannot be used: /nonexistent/nvidiactl: no such file or directory, and ' +
      'nvidia-modprobe, which makes it, is not installed.',
  );
  expect(() => chooseBackend('real', installation, machine('missing'))).toThrow(
    'libcuda.so.1 of the NVIDIA driver is not installed',
  );
});

describe('before the first CUDA program since a boot', () => {
  function install(script: string): void {
    mkdirSync(path.join(root, 'usr/bin'), { recursive: true });
    const file = path.join(root, 'usr/bin/nvidia-modprobe');
    writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }
  beforeEach(() => rmSync(path.join(root, 'dev/nvidiactl')));

  test('nvidia-modprobe makes the devices', () => {
    install(`echo "$@" >>${root}/ran; touch ${root}/dev/nvidiactl`);
    expect(chooseBackend('real', installation, machine('host')).kind).toBe('real');
    expect(readFileSync(path.join(root, 'ran'), 'utf8')).toContain('-c 255\n');
  });

  test('its failure is told', () => {
    install('echo "no kernel module" >&2; exit 1');
    expect(() => chooseBackend('real', installation, machine('host'))).toThrow(
      'nvidia-modprobe, which makes it, failed: no kernel module. Use --backend simulated',
    );
    expect(chooseBackend('auto', installation, machine('host')).kind).toBe('simulated');
  });

  test('without a driver it does not run', () => {
    install(`touch ${root}/ran`);
    expect(chooseBackend('auto', installation, machine('missing')).kind).toBe('simulated');
    expect(existsSync(path.join(root, 'ran'))).toBe(false);
  });
});

test('the driver of a host that is mounted into a container has its path on the host', () => {
  mkdirSync(path.join(root, 'run/driver/usr/lib64'), { recursive: true });
  writeFileSync(path.join(root, 'run/driver/usr/lib64/libcuda.so.1'), '');
  const found = { kind: 'real', driver: '/run/driver/usr/lib64/libcuda.so.1' };
  expect(chooseBackend('real', installation, host(root, '/run/driver'))).toEqual(found);
  // A driver container with its own device nodes.
  mkdirSync(path.join(root, 'run/driver/dev'));
  writeFileSync(path.join(root, 'run/driver/dev/nvidiactl'), '');
  expect(chooseBackend('real', installation, host(root, '/run/driver'))).toEqual({
    ...found,
    devices: '/run/driver/dev',
  });
  expect(() => chooseBackend('real', installation, host(root, '/'))).toThrow(
    'libcuda.so.1 of the NVIDIA driver is not installed',
  );
});

test('if there is no device, both directories are named', () => {
  const nowhere = path.join(root, 'nowhere');
  expect(() => chooseBackend('real', installation, host(nowhere, '/run/driver'))).toThrow(
    `${nowhere}/run/driver/dev/nvidiactl: no such file or directory; ${nowhere}/dev/nvidiactl: ` +
      `no such file or directory`,
  );
});

/** Another run of this test on the machine has another one. */
const CGROUP = `/sys/fs/cgroup/devices/nvidia-virtual-test-backend-${process.pid}`;
const mayRefuseDevices = process.getuid?.() === 0 && existsSync(path.dirname(CGROUP));

/** The output of the script in a cgroup without access to NVIDIA's devices, as in a container. */
function withoutDevices(script: string): string {
  mkdirSync(CGROUP);
  try {
    writeFileSync(path.join(CGROUP, 'devices.deny'), 'c 195:* rwm');
    const command = 'echo $$ > "$0"/cgroup.procs && exec "$@"';
    const args = ['-c', command, CGROUP, process.execPath, '--input-type', 'module', '-e', script];
    return execFileSync('sh', args, { encoding: 'utf8' });
  } finally {
    rmdirSync(CGROUP);
  }
}

(mayRefuseDevices ? test : test.skip)(
  'a container without access to the host’s devices still finds them',
  () => {
    const device = path.join(root, 'dev/other/nvidiactl');
    mkdirSync(path.dirname(device));
    execFileSync('mknod', [device, 'c', '195', '255']);
    const script = `
    import { chooseBackend, hostMachine, THIS_MACHINE } from ${JSON.stringify(new URL('./backend.js', import.meta.url).href)};
    const place = { deviceDirectories: ${JSON.stringify([path.dirname(device)])},
      libraryDirectories: () => [${JSON.stringify(path.join(root, 'host'))}] };
    for (const machine of [hostMachine('/', '/', (file) => [file, []]), THIS_MACHINE])
      console.log(chooseBackend('auto', ${JSON.stringify(installation)}, { ...machine, ...place \
}).kind);`;
    expect(withoutDevices(script)).toBe('real\nsimulated\n');
  },
);
