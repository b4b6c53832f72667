import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { whyNotServed } from '@nvidia-virtual/service/socket';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { locateInstallation } from '../host/installation.js';

/** Starts a closer that holds a listening socket, and dies before the closer runs. */
const DYING_PROXY = `
import os, socket, struct, sys, time
closer, path = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
socket.send_fds(control, [struct.pack("<II", 1, 1)], [listener.fileno()])
proxy = os.getpid()
if os.fork() == 0:
    while os.getppid() == proxy: time.sleep(0.001)
    os.dup2(theirs.fileno(), 3)
    os.execv(closer, [closer])`;

test('a closer whose gpu-proxy dies before it starts does not keep the sockets open', async () => {
  const directory = makePrivateDirectory();
  const socket = path.join(directory, 'gpu.sock');
  const { closer } = locateInstallation();
  const proxy = spawnSync('python3', ['-c', DYING_PROXY, closer, socket], {
    stdio: 'ignore',
  });
  expect(proxy.status).toBe(0);
  await until(async () => (await whyNotServed(socket)) === 'connection refused');
  removePrivateDirectory(directory);
});
