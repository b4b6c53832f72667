import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { locateInstallation } from '../host/installation.js';
import type { GpuNode } from '../node.js';
import { clientEnvironment } from '../run/run.js';
import { startNode } from '../testing/node-under-test.js';
import { RunningProgram } from '../testing/running-program.js';
import type { Allocation } from './allocation.js';

const MiB = 2 ** 20;
const SHARED = 48;

let directory: string;
let node: GpuNode;
let programs: RunningProgram[];

beforeEach(async () => {
  directory = makePrivateDirectory();
  ({ node } = await startNode(path.join(directory, 'state')));
  programs = [];
});
afterEach(async () => {
  for (const program of programs) program.kill();
  for (const allocation of node.allocations) await node.delete(allocation, { force: true });
  await node.close();
  removePrivateDirectory(directory);
});

function run(allocation: Allocation, body: string): RunningProgram {
  const program = new RunningProgram(
    body,
    clientEnvironment(locateInstallation(), allocation.socketPath),
  );
  programs.push(program);
  return program;
}

const MAKE_MEMORY = `
class Prop(ctypes.Structure): _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), \\
("place", ctypes.c_int * 2), ("meta", ctypes.c_void_p), ("flags", ctypes.c_uint8 * 8)]
prop, handle = Prop(type=1, handles=1, place=(1, 0)), ctypes.c_uint64()
must("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(SHARED), ctypes.byref(prop), zero)
must("cuMemExportToShareableHandle", ctypes.byref(file), handle, 1, zero)
def release(): must("cuMemRelease", handle)
`;

const MAKE_POOL = `
class Props(ctypes.Structure): _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), \\
("place", ctypes.c_int * 2), ("rest", ctypes.c_byte * 72)]
props, pool, address = Props(type=1, handles=1, place=(1, 0)), ctypes.c_uint64(), ctypes.c_uint64()
must("cuMemPoolCreate", ctypes.byref(pool), ctypes.byref(props))
must("cuMemAllocFromPoolAsync", ctypes.byref(address), ctypes.c_size_t(SHARED), pool, None)
must("cuCtxSynchronize")
must("cuMemPoolExportToShareableHandle", ctypes.byref(file), pool, 1, zero)
must("cuMemPoolExportPointer", data, address)
def release():
    must("cuMemFreeAsync", address, None)
    must("cuCtxSynchronize")
    must("cuMemPoolTrimTo", pool, ctypes.c_size_t(0))
`;

/** Gives a descriptor of its memory to every process that connects; does what its input says. */
function startOwner(allocation: Allocation, make = MAKE_MEMORY): RunningProgram {
  return run(
    allocation,
    `
import socket, threading
start()
SHARED, zero = ${SHARED} * MiB, ctypes.c_uint64(0)
file, data = ctypes.c_int(), (ctypes.c_ubyte * 64)()
${make}
listener = socket.socket(socket.AF_UNIX)
listener.bind(${JSON.stringify(path.join(directory, 'gift'))}); listener.listen()
def give():
    while True:
        connection, _ = listener.accept()
        socket.send_fds(connection, [bytes(data)], [file.value])
        connection.close()
threading.Thread(target=give, daemon=True).start()
say("ready")
for word in sys.stdin:
    if word == "release\\n": release()
    else: os.close(file.value)
    say("done")
`,
  );
}

const IMPORT_MEMORY = `
handle = ctypes.c_uint64()
say(result("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(files[0]), 1))
`;

const IMPORT_POOL = `
pool, address = ctypes.c_uint64(), ctypes.c_uint64()
status = result("cuMemPoolImportFromShareableHandle", ctypes.byref(pool), \\
ctypes.c_void_p(files[0]), 1, ctypes.c_uint64(0))
say(status or result("cuMemPoolImportPointer", ctypes.byref(address), pool, data))
sys.stdin.readline()
must("cuMemFreeAsync", address, None)
must("cuCtxSynchronize")
say("done")
`;

/** Says what the import of the owner's memory answers, and keeps it. */
function startUser(allocation: Allocation, take = IMPORT_MEMORY): RunningProgram {
  return run(
    allocation,
    `
import socket
start()
connection = socket.socket(socket.AF_UNIX)
connection.connect(${JSON.stringify(path.join(directory, 'gift'))})
data, files, _, _ = socket.recv_fds(connection, 64, 1)
${take}
os.close(files[0])
sys.stdin.read()
`,
  );
}

async function order(owner: RunningProgram, word: string): Promise<void> {
  owner.tell(word);
  expect(await owner.line()).toBe('done');
}

const used = (allocation: Allocation) => allocation.memoryUsed / MiB;

test('only processes of the allocation import its memory, also with a descriptor', async () => {
  const [mine, other] = [
    await node.create({ memory: 2 * SHARED * MiB }),
    await node.create({ memory: 2 * SHARED * MiB }),
  ];
  const owner = startOwner(mine);
  expect(await owner.line()).toBe('ready');
  expect(await startUser(other).line()).toBe('1');
  expect(await startUser(mine).line()).toBe('0');
  owner.kill();
  await until(() => mine.sessionCount === 1);
  expect(used(mine)).toBeGreaterThanOrEqual(SHARED);
});

test('shared memory is charged once, until its last holder is gone', async () => {
  const allocation = await node.create({ memory: 2 * SHARED * MiB });
  const owner = startOwner(allocation);
  expect(await owner.line()).toBe('ready');
  const user = startUser(allocation);
  expect(await user.line()).toBe('0');
  const charged = () => used(allocation) >= SHARED && used(allocation) < 2 * SHARED;
  expect(charged()).toBe(true);
  await order(owner, 'release');
  expect(charged()).toBe(true);
  await order(owner, 'close');
  user.kill();
  await until(() => used(allocation) < SHARED);
});

test('a descriptor keeps memory that is released, until it is closed', async () => {
  const allocation = await node.create({ memory: 2 * SHARED * MiB });
  const owner = startOwner(allocation);
  expect(await owner.line()).toBe('ready');
  await order(owner, 'release');
  expect(used(allocation)).toBeGreaterThanOrEqual(SHARED);
  await order(owner, 'close');
  await until(() => used(allocation) < SHARED);
});

test('memory of a pool stays in its allocation, and is charged until it is freed', async () => {
  const allocation = await node.create({ memory: 3 * SHARED * MiB });
  const other = await node.create({ memory: 3 * SHARED * MiB });
  const owner = startOwner(allocation, MAKE_POOL);
  expect(await owner.line()).toBe('ready');
  expect(await startUser(other, IMPORT_POOL).line()).toBe('1');
  const user = startUser(allocation, IMPORT_POOL);
  expect(await user.line()).toBe('0');
  const charged = () => used(allocation) >= SHARED && used(allocation) < 2 * SHARED;
  expect(charged()).toBe(true);
  await order(owner, 'release');
  expect(charged()).toBe(true);
  await order(user, 'free');
  await until(() => used(allocation) < SHARED);
});
