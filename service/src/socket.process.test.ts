import { spawnSync } from 'node:child_process';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { makePrivateDirectory, removePrivateDirectory } from './private-directory.js';
import { checkSocketPath, clearStaleSocket, listenAt, whyNotServed } from './socket.js';

let directory: string;
let socket: string;

beforeEach(() => {
  directory = makePrivateDirectory();
  socket = path.join(directory, 'gpu.sock');
});
afterEach(() => removePrivateDirectory(directory));

test('checkSocketPath() refuses what the system would cut off', () => {
  expect(() => checkSocketPath('/'.padEnd(107, 'x'))).not.toThrow();
  expect(() => checkSocketPath('/'.padEnd(108, 'x'))).toThrow(
    'has 108 bytes, more than the 107 that the system allows',
  );
  expect(() => checkSocketPath('/'.padEnd(100, 'ä'))).toThrow('bytes, more than the 107');
});

test('whyNotServed() tells a missing, a dead and a served socket apart', async () => {
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
  'listenAt() makes a socket of mode %d at once, whatever the umask',
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

test('clearStaleSocket() touches nothing that is no socket', async () => {
  writeFileSync(socket, 'precious');
  await expect(clearStaleSocket(socket)).rejects.toThrow('a file that is not a socket is there');
  expect(existsSync(socket)).toBe(true);
});

/** As a proxy leaves it that was killed. */
function leaveDeadSocket(): void {
  const script = 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])';
  expect(spawnSync('python3', ['-c', script, socket]).status).toBe(0);
}
