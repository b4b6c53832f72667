import { spawnSync } from 'node:child_process';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { makePrivateDirectory } from './private-directory.js';
import { checkSocketPath, clearStaleSocket, listenAt, whyNotServed } from './socket.js';
import { removePrivateDirectory } from './testing/private-directory.js';

let directory: string;
let socket: string;

beforeEach(() => {
  directory = makePrivateDirectory();
  socket = path.join(directory, 'gpu.sock');
});
afterEach(() => removePrivateDirectory(directory));

test('checkSocketPath() refuses paths that exceed the limit', () => {
  expect(() => checkSocketPath('/'.padEnd(107, 'x'))).not.toThrow();
  expect(() => checkSocketPath('/'.padEnd(108, 'x'))).toThrow('has 108 bytes; the limit is 107');
  expect(() => checkSocketPath('/'.padEnd(100, 'ä'))).toThrow('bytes; the limit is 107');
});

test('whyNotServed() distinguishes a missing, a stale and a served socket', async () => {
  expect(await whyNotServed(socket)).toBe('no such file or directory');
  leaveDeadSocket();
  expect(await whyNotServed(socket)).toBe('connection refused');
  await clearStaleSocket(socket);
  expect(existsSync(socket)).toBe(false);
  const server = createServer((connection) => connection.destroy());
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  expect(await whyNotServed(socket)).toBeUndefined();
  await expect(clearStaleSocket(socket)).rejects.toThrow(
    `Another gpu-proxy already serves ${socket}.`,
  );
  await new Promise((resolve) => server.close(resolve));
});

test.each([0o600, 0o666])(
  'listenAt() creates a socket of mode %d, independent of the umask',
  async (mode) => {
    const server = createServer();
    const former = process.umask(mode === 0o600 ? 0 : 0o077);
    const umask = process.umask();
    const listening = listenAt(server, socket, mode);
    expect([statSync(socket).mode & 0o777, process.umask(former)]).toEqual([mode, umask]);
    await listening;
    await new Promise((resolve) => server.close(resolve));
  },
);

test('clearStaleSocket() removes nothing but sockets', async () => {
  writeFileSync(socket, 'precious');
  await expect(clearStaleSocket(socket)).rejects.toThrow('the path exists and is not a socket');
  expect(existsSync(socket)).toBe(true);
});

/** Leaves a socket like that of a killed proxy. */
function leaveDeadSocket(): void {
  const script = 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])';
  expect(spawnSync('python3', ['-c', script, socket]).status).toBe(0);
}
