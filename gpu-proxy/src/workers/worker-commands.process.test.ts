import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync } from 'node:fs';
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
_, control, _, _ = socket.socket(fileno=3).recvmsg(100, socket.CMSG_SPACE(4))
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
  ['b"done\\n"', undefined],
  ['b""', undefined], // it has ended
  ['b"error it cannot stop\\n"', 'it cannot stop'],
  ['b"error \\x1b[2J\\xff\\n"', '?[2J?'],
  ['b"error " + b"x" * 60000', 'x'.repeat(1018)],
])('an answer of %s is understood', async (answer, reason) => {
  startWorker(answer);
  expect(await sendWorkerCommand(addon, socket, 'resume')).toBe(reason);
});

test('a worker that keeps its answer open is not waited for after its line', async () => {
  startWorker('b"done\\n"', 'stay');
  expect(await sendWorkerCommand(addon, socket, 'resume')).toBeUndefined();
});

test('a worker without the socket takes no commands', async () => {
  expect(await sendWorkerCommand(addon, socket, 'resume')).toMatch(/takes no commands: .*ENOENT/);
  closeSync(addon.commandSocket(socket));
  expect(await sendWorkerCommand(addon, socket, 'resume')).toMatch(/takes no .*ECONNREFUSED/);
});
