import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, ftruncateSync, mkdirSync, writeSync } from 'node:fs';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { Addon } from '../host/addon.js';
import { locateInstallation } from '../host/installation.js';
import { sendWorkerCommand } from './worker-commands.js';

const addon = new Addon(locateInstallation().addon);

/** Receives one command on descriptor 3, and writes its answer. */
const WORKER = `
import array, os, socket, sys
_, control, _, _ = socket.socket(fileno=3).recvmsg(100, socket.CMSG_SPACE(8))
answer = array.array("i", control[0][2])[0]
os.write(answer, eval(sys.argv[1]))
if sys.argv[2:]: sys.stdin.read()`;

let directory: string;
let socket: string;
let worker: ChildProcess | undefined;

beforeEach(() => {
  directory = makePrivateDirectory();
  const long = path.join(directory, 'x'.repeat(150)); // longer than the address of a socket
  mkdirSync(long);
  socket = path.join(long, 'commands');
});
afterEach(() => {
  worker?.kill('SIGKILL');
  removePrivateDirectory(directory);
});

function startWorker(...args: string[]): void {
  const fd = addon.commandSocket(socket);
  worker = spawn('python3', ['-c', WORKER, ...args], { stdio: ['pipe', 'ignore', 'inherit', fd] });
  closeSync(fd);
}

test.each([
  ['b"done\\n"', { kind: 'done', bytes: 0 }],
  ['b"done 4096\\n"', { kind: 'done', bytes: 4096 }],
  ['b"lacks 4096\\n"', { kind: 'lacks', bytes: 4096 }],
  ['b"done -1\\n"', { kind: 'done', bytes: 0 }],
  ['b"done 1e300\\n"', { kind: 'done', bytes: 0 }],
  ['b""', { kind: 'ended' }],
  ['b"error it cannot stop\\n"', { kind: 'refused', reason: 'it cannot stop' }],
  ['b"error \\x1b[2J\\xff\\n"', { kind: 'refused', reason: '?[2J?' }],
  ['b"error " + b"x" * 60000', { kind: 'refused', reason: 'x'.repeat(1018) }],
])('an answer of %s is understood', async (answer, understood) => {
  startWorker(answer);
  expect(await sendWorkerCommand(addon, socket, 'suspend 1')).toEqual(understood);
});

test('a worker gets the file of a command behind the pipe for its answer', async () => {
  startWorker('os.pread(array.array("i", control[0][2])[1], 100, 0)');
  const file = addon.memoryFile(4096);
  writeSync(file, 'done 7\n', 0);
  const answer = await sendWorkerCommand(addon, socket, 'leave 1', { file });
  expect(answer).toEqual({ kind: 'done', bytes: 7 });
  expect(() => ftruncateSync(file, 100)).toThrow('EPERM');
  closeSync(file);
});

test('a worker that keeps its answer open is not waited for after its line', async () => {
  startWorker('b"done\\n"', 'stay');
  expect(await sendWorkerCommand(addon, socket, 'resume')).toEqual({ kind: 'done', bytes: 0 });
});

test('a worker without the socket takes no commands', async () => {
  expect(await sendWorkerCommand(addon, socket, 'resume')).toEqual({
    kind: 'silent',
    reason: expect.stringMatching('its worker takes no commands: .*ENOENT'),
  });
});

test('a worker whose socket is closed has ended', async () => {
  closeSync(addon.commandSocket(socket));
  expect(await sendWorkerCommand(addon, socket, 'resume')).toEqual({ kind: 'ended' });
});
