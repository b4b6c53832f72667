import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pino } from 'pino';
import { locateInstallation } from './installation.js';
import { HostLauncher } from './launcher.js';
import { makePrivateDirectory, removePrivateDirectory } from './private-directory.js';

const HERE = { mounts: '/proc/self/ns/mnt', cgroups: '/proc/self/ns/cgroup', root: '/' };
const asRoot = process.getuid?.() === 0 ? test : test.skip;

let devices: string;

beforeEach(() => {
  devices = makePrivateDirectory();
});
afterEach(() => removePrivateDirectory(devices));

function launch(options: { libraries?: string; devices?: string }, ...[file, ...args]: [string, ...string[]]): string {
  const launcher = new HostLauncher({
    ...{ executable: locateInstallation().launcher, namespaces: HERE, logger: pino({ enabled: false }) },
    ...options,
  });
  const [program, words] = launcher.command(file, args);
  return execFileSync(program, words, { encoding: 'utf8' });
}

asRoot('a program sees the devices of a driver that is a container, and the host keeps its own', () => {
  const before = readdirSync('/dev');
  mkdirSync(path.join(devices, 'shm'));
  writeFileSync(path.join(devices, 'nvidiactl'), '');
  expect(launch({ devices }, '/bin/ls', '/dev')).toBe('nvidiactl\nshm\n');
  expect(readdirSync('/dev')).toEqual(before);
  expect(launch({}, '/bin/ls', '/dev').trim().split('\n')).not.toContain('nvidiactl');
});

asRoot('a program is told where the driver’s libraries are', () => {
  expect(launch({ libraries: '/state/driver' }, '/usr/bin/printenv', 'LD_LIBRARY_PATH')).toBe('/state/driver\n');
});
