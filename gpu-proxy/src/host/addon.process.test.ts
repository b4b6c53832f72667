import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  closeSync,
  fstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { identifyProcess } from '@nvidia-virtual/service/process-table';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { Addon, descriptorOf } from './addon.js';
import { locateInstallation } from './installation.js';

const MiB = 2 ** 20;
const addon = new Addon(locateInstallation().addon);

async function withUnixSocket(
  body: (accepted: Socket, client: Socket) => void | Promise<void>,
): Promise<void> {
  const directory = makePrivateDirectory();
  const server = createServer({ pauseOnConnect: true });
  await new Promise<void>((resolve) => server.listen(path.join(directory, 's'), resolve));
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const client = createConnection(path.join(directory, 's'));
  const [socket] = await accepted;
  await body(socket, client);
  socket.destroy();
  client.destroy();
  await new Promise((resolve) => server.close(resolve));
  removePrivateDirectory(directory);
}

test('peerCredentials() returns what the kernel knows of the peer', async () => {
  await withUnixSocket((socket) => {
    expect(addon.peerCredentials(socket)).toEqual({
      pid: process.pid,
      uid: process.getuid?.(),
      gid: process.getgid?.(),
    });
    socket.destroy();
    expect(() => addon.peerCredentials(socket)).toThrow();
  });
});

test('peerCredentials() refuses a socket that is not a Unix socket', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const client = createConnection((server.address() as { port: number }).port, '127.0.0.1');
  const [socket] = await accepted;
  expect(() => addon.peerCredentials(socket)).toThrow('no connected Unix socket');
  socket.destroy();
  client.destroy();
  await new Promise((resolve) => server.close(resolve));
});

test('peerPidfd() refers to the process that connected', async () => {
  await withUnixSocket((socket) => {
    const pidfd = addon.peerPidfd(socket);
    if (pidfd === undefined) return; // a kernel before 6.5
    expect(readFileSync(`/proc/self/fdinfo/${pidfd}`, 'utf8')).toMatch(
      new RegExp(`^Pid:\\s+${process.pid}$`, 'm'),
    );
    closeSync(pidfd);
  });
});

test('peerSendsNoMore() is true after a client has shut down its side', async () => {
  await withUnixSocket(async (socket, client) => {
    expect(addon.peerSendsNoMore(socket)).toBe(false);
    client.write('a byte that is not read');
    await new Promise<void>((resolve) => client.end(() => resolve()));
    expect(addon.peerSendsNoMore(socket)).toBe(true);
    socket.destroy();
    expect(addon.peerSendsNoMore(socket)).toBe(true);
  });
});

test('watchProcess() reports each exit once, of child processes and of others', async () => {
  // The child of the shell is not a child of the test, and outlives the shell.
  const shell = spawn('sh', ['-c', 'sleep 1000 & echo $!'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = await once(shell.stdout, 'data');
  const orphan = Number(String(line));
  const child = spawn('sleep', ['1000']);
  const ends: string[] = [];
  const ended = (who: string, pid: number) =>
    new Promise<void>((resolve) => {
      addon.watchProcess(identifyProcess(pid), () => {
        ends.push(who);
        resolve();
      });
    });
  const both = [ended('child', child.pid as number), ended('orphan', orphan)];
  expect(ends).toEqual([]);
  process.kill(orphan, 'SIGKILL');
  await both[1];
  expect(ends).toEqual(['orphan']);
  child.kill('SIGKILL');
  await Promise.all(both);
  expect(ends).toEqual(['orphan', 'child']);
});

test('watchProcess() reports an exited process and a reused pid at once', async () => {
  const child = spawn('true');
  const identity = identifyProcess(child.pid as number);
  await once(child, 'exit');
  await new Promise<void>((resolve) => addon.watchProcess(identity, resolve));
  await new Promise<void>((resolve) =>
    addon.watchProcess({ pid: process.pid, startTime: '1' }, resolve),
  );
});

test('a stopped watch reports nothing, and watches are independent', async () => {
  const child = spawn('sleep', ['1000']);
  const open = () => readdirSync('/proc/self/fd').length;
  const before = open();
  let told = 0;
  const stops = Array.from({ length: 50 }, () =>
    addon.watchProcess({ pid: child.pid as number }, () => told++),
  );
  for (const stop of stops) {
    stop();
    stop();
  }
  expect(open()).toBeLessThanOrEqual(before + 3); // descriptors of the thread itself
  const end = new Promise<void>((resolve) =>
    addon.watchProcess({ pid: child.pid as number }, resolve),
  );
  child.kill('SIGKILL');
  await end;
  expect(told).toBe(0);
});

test('sendDescriptors() sends a packet with files to the other end of a socketPair()', async () => {
  const [ours, theirs] = addon.socketPair();
  // Python receives, because Node cannot.
  const receiver = `
import array, os, socket
end = socket.socket(fileno=3)
data, ancillary, flags, _ = end.recvmsg(4096, socket.CMSG_SPACE(64))
fds = array.array("i", ancillary[0][2])
print(data, len(fds), end.type == socket.SOCK_SEQPACKET)
os.write(fds[1], b"through")
`;
  const child = spawn('python3', ['-c', receiver], {
    stdio: ['ignore', 'pipe', 'inherit', theirs],
  });
  closeSync(theirs);
  const [left, right] = addon.socketPair();
  addon.sendDescriptors(ours, Buffer.from('one\0two\0'), [left, right]);
  let output = '';
  child.stdout?.on('data', (data: Buffer) => {
    output += data;
  });
  await once(child, 'close');
  expect(output).toBe("b'one\\x00two\\x00' 2 True\n");
  const text = Buffer.alloc(16);
  expect(text.toString('latin1', 0, readSync(left, text))).toBe('through');
  // Its reader has exited. No SIGPIPE was raised.
  expect(() => addon.sendDescriptors(ours, Buffer.from('x'), [])).toThrow('EPIPE');
  for (const fd of [ours, left, right]) closeSync(fd);
});

test('sendDescriptors() refuses non-sockets, too many files and full sockets', () => {
  const [left, right] = addon.socketPair();
  expect(() => addon.sendDescriptors(999_999, Buffer.from('x'), [])).toThrow('EBADF');
  expect(() => addon.sendDescriptors(left, Buffer.from('x'), Array(17).fill(right))).toThrow(
    'at most 16',
  );
  expect(() => {
    for (;;) addon.sendDescriptors(left, Buffer.alloc(1000), []);
  }).toThrow('EAGAIN');
  fstatSync(left);
  closeSync(left);
  closeSync(right);
});

test('descriptorOf() returns the descriptor of the file that Node has open', async () => {
  await withUnixSocket((socket) => expect(fstatSync(descriptorOf(socket)).isSocket()).toBe(true));
});

(process.getuid?.() === 0 ? test : test.skip)(
  'memoryDirectory() is a directory that has a limit and no path',
  () => {
    const fd = addon.memoryDirectory(MiB);
    const directory = `/proc/self/fd/${fd}`;
    const file = path.join(directory, 'file');
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    writeFileSync(file, Buffer.alloc(MiB));
    expect(() => appendFileSync(file, 'more')).toThrow('ENOSPC');
    expect(readlinkSync(directory)).toBe('/');
    closeSync(fd);
    expect(() => statSync(file)).toThrow('ENOENT');
  },
);
