import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { Addon } from '../host/addon.js';
import { locateInstallation } from '../host/installation.js';
import { DIRECT } from '../host/launcher.js';
import { startKeeper, tellKeeper } from './keeper.js';

/** Waits for its files like a parked worker. Says which of the two may be written afterwards. */
const WORKER = `
import array, ctypes, fcntl, mmap, os, socket, sys
names = {}
def share(name, protection):
    file = os.open(name, os.O_CREAT | os.O_RDWR, 0o600)
    os.truncate(file, 4096)
    names[os.fstat(file).st_ino] = name
    at = ctypes.CDLL(None).mmap(None, 4096, protection, mmap.MAP_SHARED, file, ctypes.c_long(0))
    assert at != -1
    os.close(file)
os.chdir(sys.argv[1])
share("read", mmap.PROT_READ)
share("written", mmap.PROT_READ | mmap.PROT_WRITE)
inside, outside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
os.dup2(inside.fileno(), 98)
os.dup2(outside.fileno(), 99)
for each in inside, outside: each.close()
print("ready", flush=True)
inside = socket.socket(fileno=98)
inside.send(b"k")
while names:
    _, control, _, _ = inside.recvmsg(4, socket.CMSG_SPACE(64))
    for file in array.array("i", control[0][2]):
        name = names.pop(os.fstat(file).st_ino, None)
        rights = fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE
        if name: print(name, rights != os.O_RDONLY, flush=True)
`;

let directory: string;
let worker: ChildProcess | undefined;

beforeEach(() => {
  directory = makePrivateDirectory();
});
afterEach(() => {
  worker?.kill('SIGKILL');
  removePrivateDirectory(directory);
});

test('a worker gets no right to write what it could only read', async () => {
  const installation = locateInstallation();
  const addon = new Addon(installation.addon);
  const [read, write] = addon.pipe();
  worker = spawn('python3', ['-c', WORKER, directory], { stdio: ['ignore', write, 'ignore'] });
  closeSync(write);
  const output = new Socket({ fd: read, readable: true, writable: false });
  let said = '';
  output.on('data', (data) => {
    said += data.toString();
  });
  await once(output, 'data');
  const pid = worker.pid as number;
  const options = { installation, addon, launcher: DIRECT, socket: path.join(directory, 'keeper') };
  await startKeeper(pid, options);
  expect(await tellKeeper(options, 'hold')).toMatchObject({ kind: 'done' });
  await tellKeeper(options, `give ${pid}`);
  await once(output, 'end');
  expect(said.trim().split('\n').sort()).toEqual(['read False', 'ready', 'written True']);
});
