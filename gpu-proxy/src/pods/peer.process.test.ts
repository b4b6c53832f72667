import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { identifyProcess } from '@nvidia-virtual/service/process-table';
import { removePrivateDirectory } from '@nvidia-virtual/service/testing/private-directory';
import { Addon } from '../host/addon.js';
import { locateInstallation } from '../host/installation.js';
import { identifyPeer } from './peer.js';

const KNOWN = {
  podUid: '0b6f6c5e-1111-4222-8333-944444444444',
  containerId: 'c0ffee'.padEnd(64, '0'),
};
const PATIENCE_MS = 20_000;

/** Linux before 6.5 provides no pidfd of a peer. */
class AddonOfOldKernel extends Addon {
  override peerPidfd(): undefined {
    return undefined;
  }
}

/**
 * Starts a child that connects. SIGUSR1: ends the child. SIGUSR2: replaces it by another process
 * with the same pid and a later start time.
 */
const PARENT = `
import os, signal, socket, sys, time

def child(work):
    pid = os.fork()
    if pid == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1, signal.SIGUSR2])
        work()
        time.sleep(1000)
    return pid

def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

# In clock ticks of 10 ms.
def start_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[19]

def connect():
    global connection
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])

signals = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM]
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
current = first = child(connect)
began = start_of(first)
heard = signal.sigwait(signals)
if heard != signal.SIGTERM:
    end(first)
    current = 0
while heard == signal.SIGUSR2 and (current != first or start_of(current) == began):
    if current: end(current)
    open("/proc/sys/kernel/ns_last_pid", "w").write(str(first - 1))
    current = child(lambda: None)
if heard != signal.SIGTERM: signal.sigwait(signals)
if current: end(current)
`;

let directory: string;
let server: Server;
let parent: ChildProcess;
let connection: Socket;

beforeEach(async () => {
  directory = makePrivateDirectory();
  server = createServer({ pauseOnConnect: true });
  await new Promise<void>((resolve) => server.listen(path.join(directory, 's'), resolve));
  const accepted = once(server, 'connection');
  parent = spawn('python3', ['-c', PARENT, path.join(directory, 's')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  [connection] = (await accepted) as [Socket];
});
afterEach(async () => {
  const ended = once(parent, 'exit');
  parent.kill('SIGTERM');
  await ended;
  connection.destroy();
  await new Promise((resolve) => server.close(resolve));
  removePrivateDirectory(directory);
});

/** Lets this happen to the process while its cgroup is read. */
function meanwhile(
  signal: NodeJS.Signals,
  reached: (startTime: string | undefined) => boolean,
): (pid: number) => typeof KNOWN {
  return (pid) => {
    parent.kill(signal);
    const cell = new Int32Array(new SharedArrayBuffer(4));
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; Atomics.wait(cell, 0, 0, 10))
      if (reached(identifyProcess(pid).startTime)) return KNOWN;
    throw new Error(`process ${pid} is as it was`);
  };
}

describe.each([
  ['a pidfd', Addon],
  ['its start time, before Linux 6.5', AddonOfOldKernel],
])('number 16: the peer is identified by %s', (_, Kernel) => {
  const addon = new Kernel(locateInstallation().addon);

  test('while it lives', () => {
    const { pid } = addon.peerCredentials(connection);
    expect(identifyPeer(addon, connection, () => KNOWN)).toEqual({ pid, ...KNOWN });
    expect(() => identifyPeer(addon, connection, () => undefined)).toThrow(
      expect.objectContaining({ code: 'PEER_OUTSIDE' }),
    );
  });

  test('but not if it ended meanwhile', () => {
    const gone = meanwhile('SIGUSR1', (startTime) => startTime === undefined);
    expect(() => identifyPeer(addon, connection, gone)).toThrow(
      expect.objectContaining({ code: 'PEER_GONE' }),
    );
    // The pid is free now.
    expect(() => identifyPeer(addon, connection, () => KNOWN)).toThrow(
      expect.objectContaining({ code: 'PEER_GONE' }),
    );
  });

  (process.getuid?.() === 0 ? test : test.skip)(
    'but not if another process got its pid meanwhile',
    () => {
      const { pid } = addon.peerCredentials(connection);
      const { startTime: first } = identifyProcess(pid);
      const another = meanwhile(
        'SIGUSR2',
        (startTime) => startTime !== undefined && startTime !== first,
      );
      expect(() => identifyPeer(addon, connection, another)).toThrow(
        expect.objectContaining({ code: 'PEER_GONE' }),
      );
      expect(identifyProcess(pid).startTime).toBeDefined();
    },
  );
});
