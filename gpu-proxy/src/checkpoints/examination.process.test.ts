import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { jest } from '@jest/globals';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import type { Allocation } from '../allocations/allocation.js';
import { DIRECT, type Launcher } from '../host/launcher.js';
import type { GpuNode } from '../node.js';
import { allBegun } from '../testing/begun.js';
import { withCriu } from '../testing/criu.js';
import { MovingProgram } from '../testing/moving-program.js';
import { startNode } from '../testing/node-under-test.js';
import { Criu } from './criu.js';
import { type Expected, examineImages, examineProcess } from './examination.js';

const MiB = 2 ** 20;

let directory: string;
let node: GpuNode | undefined;
let program: MovingProgram | undefined;

beforeEach(() => {
  directory = makePrivateDirectory();
});
afterEach(async () => {
  jest.restoreAllMocks();
  program?.kill();
  for (const allocation of node?.allocations ?? []) await node?.delete(allocation, { force: true });
  await node?.close();
  removePrivateDirectory(directory);
});

/** @param before commands of a shell that then becomes the worker */
async function start(before = ''): Promise<Allocation> {
  const launcher: Launcher = {
    ...DIRECT,
    command: (file, args) =>
      args.includes('--control')
        ? ['/bin/sh', ['-c', `${before}\nexec "$0" "$@"`, file, ...args]]
        : [file, args],
  };
  const settings = { hostMemory: 1024 * MiB };
  ({ node } = await startNode(path.join(directory, 'state'), { settings, launcher }));
  const allocation = await node.create({ gpus: ['0'], memory: 256 * MiB });
  program = await MovingProgram.start(allocation.socketPath, MiB);
  await allBegun(allocation);
  return allocation;
}

const files = () => path.join(directory, 'files');

for (const [what, before, reason] of [
  ['a device open', 'exec </dev/zero', '/dev/zero open'],
  ['a file of /proc open', 'exec </proc/self/status', '/status open'],
  [
    'a library of its own',
    'cp "$(ls /usr/lib/*/libz.so.1)" "$HERE/"; export LD_PRELOAD="$HERE/libz.so.1"',
    'libz.so.1 mapped',
  ],
  ['a child process', 'sleep 10 <&- >&- 2>&- 3>&- 4>&- 6>&- &', 'the child process'],
] as const) {
  withCriu(`a worker that has ${what} is not written, and goes on`, async () => {
    const allocation = await start(`HERE=${directory}; ${before}`);
    const written = (node as GpuNode).checkpoint(allocation, files());
    await expect(written).rejects.toMatchObject({
      code: 'CHECKPOINT_REFUSED',
      message: expect.stringContaining(reason),
    });
    expect(allocation.specification.checkpoint).toBeUndefined();
    await program?.check();
  });
}

withCriu('only what may be made again is accepted from CRIU', async () => {
  const allocation = await start();
  const images = path.join(directory, 'images');
  const { dump } = Criu.prototype;
  jest.spyOn(Criu.prototype, 'dump').mockImplementationOnce(async function (this: Criu, pid, task) {
    await dump.call(this, pid, task);
    cpSync(task.directory, images, { recursive: true, dereference: true });
  });
  const pid = allocation.sessions[0]?.workerPid as number;
  await (node as GpuNode).checkpoint(allocation, files());
  const code = [path.resolve('build')];
  const right: Expected = { pid, uid: undefined, code, hasRoom: false };
  examineImages(images, right);
  const refused = (other: Partial<Expected>, reason: string) =>
    expect(() => examineImages(images, { ...right, ...other })).toThrow(reason);
  refused({ pid: pid + 1 }, 'has other processes');
  refused({ code: [] }, '.so.1 open');
  refused({ uid: 20_000 }, 'the rights of another user');
  writeFileSync(path.join(images, 'ghost-file-1.img'), '');
  refused({}, 'something of the kind ghost-file-1.img');
  rmSync(path.join(images, 'ghost-file-1.img'));
  examineImages(images, right);
  truncateSync(path.join(images, 'files.img'), 2 ** 40);
  refused({}, 'the file files.img of CRIU has more than 4194304 bytes');
});

const ABUNDANT = `
import mmap, os, sys
def descriptors():
    for _ in range(4096): os.dup(0)
def mappings():
    for _ in range(15):
        os.mkdir("x" * 250)
        os.chdir("x" * 250)
    file = os.open("file", os.O_CREAT | os.O_RDWR)
    os.truncate(file, 4096)
    mapped = [mmap.mmap(file, 4096) for _ in range(5000)]
    os.closerange(file, 10000)
    return mapped
kept = globals()[sys.argv[1]]()
print("ready", flush=True)
sys.stdin.read()
`;

for (const [what, reason] of [
  ['descriptors', 'more than 4096 descriptors'],
  ['mappings', 'a list of mappings of more than 16 MiB'],
] as const)
  test(`a worker with too many ${what} is refused`, async () => {
    const process = spawn('python3', ['-c', ABUNDANT, what], { cwd: directory });
    try {
      await once(process.stdout, 'data');
      const pid = process.pid as number;
      const examined = examineProcess({ pid, uid: undefined, code: [], hasRoom: false });
      await expect(examined).rejects.toThrow(`worker ${pid} has ${reason}, which a parked`);
    } finally {
      process.kill('SIGKILL');
      await once(process, 'close');
    }
  });
