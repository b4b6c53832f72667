import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { pino } from 'pino';
import { DEVICES, nodeCgroups, removeCgroup } from '../testing/node-cgroups.js';
import { locateInstallation } from './installation.js';
import { type Command, HostLauncher, type Tenant } from './launcher.js';

const HERE = { mounts: '/proc/self/ns/mnt', cgroups: '/proc/self/ns/cgroup', root: '/' };
const isRoot = process.getuid?.() === 0;
const asRoot = isRoot ? test : test.skip;
const withUserfaultfd = isRoot && existsSync('/dev/userfaultfd') ? test : test.skip;
const O_PATH = 0x20_0000;

/** Nodes as a pod with CAP_MKNOD makes them, and whether a worker may open them. */
const NODES: Record<string, readonly [kind: string, major: number, minor: number, may: boolean]> = {
  disk: ['b', 7, 0, false],
  memory: ['c', 1, 1, false],
  log: ['c', 1, 11, false],
  'a GPU that the node does not show': ['c', 195, 77, false],
  'the right to configure MIG': ['c', 240, 1, false],
  'a part of a GPU': ['c', 240, 2, true],
  'a GPU': ['c', 195, 76, true],
  null: ['c', 1, 3, true],
  random: ['c', 1, 9, true],
};

let directory: string;
let unified: string;
let tenant: Tenant;
let client: ChildProcess;
let files: number[];
let workers: ChildProcess[];

const nodes = () => nodeCgroups(unified, `node-of-${tenant.podUid}`);
const pods = () => nodes().map((node) => path.join(node, `pod${tenant.podUid}`));

beforeEach(() => {
  if (!isRoot) return;
  workers = [];
  directory = makePrivateDirectory();
  unified = path.join(directory, 'unified');
  for (const name of ['unified', 'nodes', 'dev/nvidia-caps'])
    mkdirSync(path.join(directory, name), { recursive: true });
  execFileSync('mount', ['-t', 'cgroup2', 'none', unified]);
  client = spawn('sleep', ['infinity']);
  tenant = { podUid: randomUUID(), pid: client.pid as number };
  for (const pod of pods()) {
    mkdirSync(pod, { recursive: true });
    writeFileSync(path.join(pod, 'cgroup.procs'), String(tenant.pid));
  }
  files = Object.entries(NODES).map(([name, [kind, major, minor]]) =>
    openSync(makeNode(`nodes/${name}`, 0o666, kind, major, minor), O_PATH),
  );
  makeNode('dev/nvidia7', 0o666, 'c', 195, 76);
  makeNode('dev/nvidia-caps/nvidia-cap1', 0o400, 'c', 240, 1);
  makeNode('dev/nvidia-caps/nvidia-cap2', 0o444, 'c', 240, 2);
});

afterEach(async () => {
  if (!isRoot) return;
  for (const worker of workers) worker.kill('SIGKILL');
  for (const file of files) closeSync(file);
  client.kill();
  await once(client, 'exit');
  for (const cgroup of [...pods(), ...nodes()]) await removeCgroup(cgroup);
  execFileSync('umount', [unified]);
  removePrivateDirectory(directory);
});

function makeNode(name: string, mode: number, ...words: (string | number)[]): string {
  const file = path.join(directory, name);
  execFileSync('mknod', [file, ...words.map(String)]);
  chmodSync(file, mode);
  return file;
}

function launcher(): HostLauncher {
  const { launcher: executable, simulatedDriver: driver } = locateInstallation();
  return new HostLauncher({
    ...{ executable, namespaces: HERE, devices: path.join(directory, 'dev') },
    files: { allocations: path.join(directory, 'nodes'), shared: [], driver },
    logger: pino({ enabled: false }),
  });
}

/**
 * A worker that was taken over: it opens the nodes by the descriptors that the pod has sent, and
 * makes one. A device without a driver is permitted, too.
 */
const SCRIPT = `
import errno, os, stat, sys
sys.stdin.read()
def permits(act):
    try: act()
    except OSError as error: return error.errno != errno.EPERM
    return True
for file in range(3, 3 + ${Object.keys(NODES).length}):
    print(permits(lambda: os.open("/proc/self/fd/%d" % file, os.O_RDONLY | os.O_NONBLOCK)))
print(permits(lambda: os.open("/proc/self/fd/3", os.O_RDWR | os.O_NONBLOCK)))
for name in ("null", "zero", "full", "random", "urandom"):
    print(permits(lambda: os.open("/dev/" + name, os.O_RDWR)))
def make(name):
    os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.unlink(name)
print(permits(lambda: make(sys.argv[1])))
`;
const ATTACK = ['/usr/bin/python3', ['-c', SCRIPT, '/tmp/null']] as const;
const REFUSED = answers(
  Object.values(NODES).map(([, , , may]) => may),
  false,
);
const PERMITTED = answers(
  Object.values(NODES).map(() => true),
  true,
);

/** A worker that opens userfaultfd for its program. */
const OPENING = `
import errno, os, sys
sys.stdin.read()
try: os.open("/dev/userfaultfd", os.O_RDWR); print("opened")
except OSError as error: print(errno.errorcode[error.errno])
`;
const OPEN = ['/usr/bin/python3', ['-c', OPENING]] as const;

function answers(nodes: readonly boolean[], others: boolean): string {
  const all = [...nodes, others, true, true, true, true, true, others];
  return all.map((each) => `${each ? 'True' : 'False'}\n`).join('');
}

/** The command after a script that changes mounts. */
function after(script: string, [file, args]: Command, ...unshared: string[]): Command {
  const words = ['/bin/sh', '-c', `${script}; exec "$@"`, 'sh', file, ...args];
  return ['unshare', ['--mount', ...unshared, ...words]];
}

/**
 * The command as on a node whose cgroups are those of this test. Other tests start workers beside
 * it, whose rooms have other devices.
 */
function onOwnNode(script: string, command: Command): Command {
  const mounts = [
    ...(existsSync(DEVICES)
      ? [`umount ${DEVICES}`, `mount -t cgroup -o devices none ${DEVICES}`]
      : []),
    'umount -a -t cgroup2',
    `mount -t cgroup2 none ${unified}`,
    script,
  ];
  const entered = nodes().map((node) => `echo $$ > ${node}/cgroup.procs`);
  return after(entered.join('; '), after(mounts.join('; '), command, '--cgroup'));
}

function start([file, args]: Command): ChildProcess {
  const worker = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit', ...files] });
  workers.push(worker);
  return worker;
}

const cgroupsOf = ({ pid }: ChildProcess) => readFileSync(`/proc/${pid}/cgroup`, 'utf8');

async function moveToPod(worker: ChildProcess, by: HostLauncher): Promise<void> {
  await eventually(() => expect(cgroupsOf(worker)).toContain('/nvidia-virtual-workers'));
  by.move(worker.pid as number, tenant);
  await eventually(() =>
    expect(cgroupsOf(worker)).toMatch(/^0::.*\/pod[0-9a-f-]+\/nvidia-virtual$/m),
  );
}

async function outcome({ stdin, stdout }: ChildProcess): Promise<string> {
  stdin?.end();
  return text(stdout as Readable);
}

/** The launcher sees no hierarchy of version 1 that could have a filter. */
const ONLY_VERSION_2 = `umount -l ${DEVICES} 2>/dev/null`;

const VERSIONS = [
  ['of this machine', ':'],
  ['version 2', ONLY_VERSION_2],
] as const;

asRoot.each(VERSIONS)(
  'a worker opens only the devices of its room, by cgroups: %s',
  async (_, mounts) => {
    const query = launcher().command(...ATTACK, 'query');
    expect(await outcome(start(onOwnNode(mounts, query)))).toBe(PERMITTED);
    for (const purpose of [{}, { tenant }, { tenant }]) {
      const worker = launcher().command(...ATTACK, purpose);
      expect(await outcome(start(onOwnNode(mounts, worker)))).toBe(REFUSED);
    }
  },
);

asRoot.each(VERSIONS)('so does what serves tenants, by cgroups: %s', async (_, mounts) => {
  const launching = launcher();
  launching.allowUserfaultfd(true);
  const run = ([file, args]: Command) =>
    outcome(start(onOwnNode(mounts, launching.command(file, args, 'node service'))));
  expect(await run(ATTACK)).toBe(REFUSED);
  expect(await run(OPEN)).toMatch(/^(EPERM|ENOENT)\n$/);
});

withUserfaultfd.each(VERSIONS)(
  'a worker opens userfaultfd as long as that is allowed, by cgroups: %s',
  async (_, mounts) => {
    const launching = launcher();
    const begin = ([file, args]: Command) =>
      start(onOwnNode(mounts, launching.command(file, args, { tenant })));
    expect(await outcome(begin(OPEN))).toBe('ENOENT\n');
    launching.allowUserfaultfd(true);
    expect(await outcome(begin(OPEN))).toBe('opened\n');
    expect(await outcome(begin(ATTACK))).toBe(REFUSED);
    const earlier = begin(OPEN);
    await eventually(() => expect(cgroupsOf(earlier)).toContain(`/pod${tenant.podUid}/`));
    launching.allowUserfaultfd(false);
    expect(await outcome(begin(OPEN))).toBe('ENOENT\n');
    expect(await outcome(earlier)).toBe('EPERM\n');
  },
);

withUserfaultfd('a warm worker that has moved opens userfaultfd if that is allowed', async () => {
  const launching = launcher();
  launching.allowUserfaultfd(true);
  const worker = start(launching.command(...OPEN, {}));
  await moveToPod(worker, launching);
  expect(await outcome(worker)).toBe('opened\n');
});

asRoot('a warm worker has the filter of its pod when it was moved there', async () => {
  const worker = start(launcher().command(...ATTACK, {}));
  await moveToPod(worker, launcher());
  expect(await outcome(worker)).toBe(REFUSED);
});

asRoot('without a filter, a worker does not start', () => {
  const [file, args] = launcher().command('/usr/bin/echo', ['started'], { tenant });
  const mounts = 'umount -l -a -t cgroup,cgroup2';
  const { status, stdout, stderr } = spawnSync(...after(mounts, [file, args]), {
    encoding: 'utf8',
  });
  expect([status, stdout]).toEqual([126, '']);
  expect(stderr).toContain(
    'cannot confine a worker, so it is not started: the node has neither cgroup v2 nor the ' +
      'hierarchy devices of v1; gpu-proxy needs the capabilities SYS_ADMIN and NET_ADMIN',
  );
});
