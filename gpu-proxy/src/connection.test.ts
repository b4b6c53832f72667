import { createConnection, createServer, type Socket } from 'node:net';
import path from 'node:path';
import { loadPeerQuestion } from './connection.js';
import { locateInstallation } from './installation.js';
import { makePrivateDirectory, removePrivateDirectory } from './private-directory.js';

const askPeer = loadPeerQuestion(locateInstallation().addon);

test('the kernel says who connected', async () => {
  const directory = makePrivateDirectory();
  const server = createServer({ pauseOnConnect: true });
  await new Promise<void>((resolve) => server.listen(path.join(directory, 's'), resolve));
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
  const client = createConnection(path.join(directory, 's'));
  const socket = await accepted;
  expect(askPeer(socket)).toEqual({ pid: process.pid, uid: process.getuid?.(), gid: process.getgid?.() });
  socket.destroy();
  client.destroy();
  expect(() => askPeer(socket)).toThrow();
  await new Promise((resolve) => server.close(resolve));
  removePrivateDirectory(directory);
});

test('a socket that is no Unix socket has no such peer', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
  const client = createConnection((server.address() as { port: number }).port, '127.0.0.1');
  const socket = await accepted;
  expect(() => askPeer(socket)).toThrow('no connected Unix socket');
  socket.destroy();
  client.destroy();
  await new Promise((resolve) => server.close(resolve));
});
