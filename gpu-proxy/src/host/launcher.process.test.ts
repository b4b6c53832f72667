import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { pino } from 'pino';
import { locateInstallation } from './installation.js';
import { type ForProgram, HostLauncher, type NodeMemory, type Query } from './launcher.js';

const HERE = { mounts: '/proc/self/ns/mnt', cgroups: '/proc/self/ns/cgroup', root: '/' };
const asRoot = process.getuid?.() === 0 ? test : test.skip;

let devices: string;
let state: string;

beforeEach(() => {
  devices = makePrivateDirectory();
  state = makePrivateDirectory();
  for (const name of ['allocations', 'arbiter', 'secret']) mkdirSync(path.join(state, name));
});
afterEach(() => {
  removePrivateDirectory(devices);
  removePrivateDirectory(state);
});

type Words = readonly [file: string, ...args: string[]];

function commandOf(
  options: { libraries?: string; devices?: string },
  purpose: ForProgram | Query | NodeMemory,
  [file, ...args]: Words,
) {
  const { launcher: executable, simulatedDriver: driver } = locateInstallation();
  const files = {
    allocations: path.join(state, 'allocations'),
    shared: [path.join(state, 'arbiter')],
    driver,
  };
  const launcher = new HostLauncher({
    executable,
    namespaces: HERE,
    files,
    logger: pino({ enabled: false }),
    ...options,
  });
  return launcher.command(file, args, purpose);
}

function launch(options: { libraries?: string; devices?: string }, ...words: Words): string {
  return execFileSync(...commandOf(options, 'query', words), { encoding: 'utf8' });
}

/** Runs a command as a worker is run. */
function shutIn(...words: Words): string {
  return execFileSync(...commandOf({}, {}, words), { encoding: 'utf8' });
}

async function listen(at: string): Promise<Server> {
  const server = createServer((connection) => connection.destroy()).listen(at);
  await once(server, 'listening');
  return server;
}

asRoot(
  'a program sees the devices of a driver container, and those of the host do not change',
  () => {
    const before = readdirSync('/dev');
    mkdirSync(path.join(devices, 'shm'));
    writeFileSync(path.join(devices, 'nvidiactl'), '');
    expect(launch({ devices }, '/bin/ls', '/dev')).toBe('nvidiactl\nshm\n');
    expect(readdirSync('/dev')).toEqual(before);
    expect(launch({}, '/bin/ls', '/dev').trim().split('\n')).not.toContain('nvidiactl');
  },
);

asRoot('a program gets the path of the driver’s libraries', () => {
  expect(launch({ libraries: '/state/driver' }, '/usr/bin/printenv', 'LD_LIBRARY_PATH')).toBe(
    '/state/driver\n',
  );
});

asRoot('a worker sees the necessary files of the host, and can write only its own', () => {
  const system = ['dev', 'etc', 'lib', 'lib64', 'proc', 'sys', 'tmp', 'usr'];
  const [, checkout = ''] = locateInstallation().simulatedDriver.split('/');
  const seen = shutIn('/usr/bin/ls', '/').trim().split('\n');
  expect([...system, checkout]).toEqual(expect.arrayContaining(seen));
  expect(seen).toEqual(expect.arrayContaining(system.filter((name) => name !== 'lib64')));
  expect(shutIn('/usr/bin/ls', '/etc', state)).toBe(
    `/etc:\nalternatives\nld.so.cache\n\n${state}:\nallocations\narbiter\n`,
  );
  expect(shutIn('/usr/bin/ls', '/dev').split('\n')).toEqual(
    expect.arrayContaining(['null', 'urandom', 'zero']),
  );
  expect(shutIn('/usr/bin/ls', '/dev')).not.toMatch(/^(kmsg|mem|vda|shm|tty.*)$/m);
  const tries = ['/usr/lib', '/usr/bin', '/sys', '/tmp', path.join(state, 'allocations')];
  const script = 'for file in "$@"; do touch "$file/new" 2>/dev/null && echo "$file"; done; exit 0';
  expect(shutIn('/usr/bin/sh', '-c', script, 'sh', ...tries)).toBe(
    `/tmp\n${path.join(state, 'allocations')}\n`,
  );
});

asRoot('a worker can connect to the arbiter’s socket only, and to no network', async () => {
  const names = {
    arbiter: path.join(state, 'arbiter', 'arbiter.sock'),
    host: path.join(state, 'secret', 'host.sock'),
    abstract: `\0nvidia-virtual-test-${process.pid}`,
  };
  const servers = await Promise.all(Object.values(names).map(listen));
  const script = `
import os, socket
for name in ${JSON.stringify(Object.values(names))}:
    try: socket.socket(socket.AF_UNIX).connect(name); print("connected")
    except OSError as error: print(type(error).__name__)
print(socket.if_nameindex())`;
  try {
    expect(shutIn('/usr/bin/python3', '-c', script)).toBe(
      "connected\nFileNotFoundError\nConnectionRefusedError\n[(1, 'lo')]\n",
    );
  } finally {
    for (const server of servers) server.close();
  }
});

asRoot('a worker sees no process of another user', () => {
  const script =
    'import os; print([pid for pid in os.listdir("/proc") if pid.isdigit()] == [str(os.getpid())])';
  const words = [
    '--reuid',
    '54321',
    '--regid',
    '54321',
    '--clear-groups',
    '/usr/bin/python3',
    '-c',
    script,
  ];
  expect(shutIn('/usr/bin/setpriv', ...words)).toBe('True\n');
});

/** The cgroup that pays for memory, from /proc/PID/cgroup. */
function payer(memberships: string): string | undefined {
  return (
    /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m.exec(memberships)?.[1] ??
    /^0::(.*)$/m.exec(memberships)?.[1]
  );
}

asRoot('memory of the node is charged to its cgroup, or the program does not run', () => {
  const [file, args] = commandOf({}, 'node memory', ['/usr/bin/cat', '/proc/self/cgroup']);
  expect(payer(execFileSync(file, args, { encoding: 'utf8' }))).toBe('/nvidia-virtual');
  const script = 'umount -R -l /sys/fs/cgroup && exec "$@"';
  const without = ['--mount', '/bin/sh', '-c', script, 'sh', file, ...args];
  const { status, stderr } = spawnSync('unshare', without, { encoding: 'utf8' });
  expect(status).toBe(126);
  expect(stderr).toContain('the memory would be charged to the cgroup');
});
