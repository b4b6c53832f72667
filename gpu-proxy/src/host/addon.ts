import { createRequire } from 'node:module';
import type { Server, Socket } from 'node:net';
import { identifyProcess } from '@nvidia-virtual/service/process-table';

/** The process at the other end of a connection, as the kernel recorded it when it connected. */
export interface PeerCredentials {
  readonly pid: number;
  readonly uid: number;
  readonly gid: number;
}

/** What native/addon exports; its README says what each does. */
interface NativeAddon {
  peerCredentials(fd: number): PeerCredentials;
  peerPidfd(fd: number): number | undefined;
  peerSendsNoMore(fd: number): boolean;
  watchProcess(pid: number, ended: () => void): () => void;
  sendDescriptors(
    fd: number,
    payload: Uint8Array,
    descriptors: readonly number[],
    patienceMs: number,
  ): void;
  socketPair(): [number, number];
  commandSocket(path: string): number;
  sendCommand(path: string, payload: Uint8Array, descriptors: readonly number[]): void;
  memoryFile(bytes: number): number;
  memoryFileHandle(fd: number): string;
  findMemoryFile(handle: string): number | undefined;
  memoryDirectory(bytes: number): number;
  pipe(): [number, number];
  lockFile(fd: number): boolean;
}

/** System calls that Node does not offer. */
export class Addon {
  readonly #native: NativeAddon;

  constructor(path: string) {
    this.#native = createRequire(import.meta.url)(path) as NativeAddon;
  }

  /** @throws if the socket is closed or not a Unix socket */
  peerCredentials(socket: Socket): PeerCredentials {
    return this.#native.peerCredentials(descriptorOf(socket));
  }

  /**
   * A pidfd of the process that connected, valid even if its pid is reused; undefined before Linux
   * 6.5. The caller closes it.
   */
  peerPidfd(socket: Socket): number | undefined {
    return this.#native.peerPidfd(descriptorOf(socket));
  }

  /** Whether the peer has closed the connection, or shut down its side. Reads nothing. */
  peerSendsNoMore(socket: Socket): boolean {
    return socket.destroyed || this.#native.peerSendsNoMore(descriptorOf(socket));
  }

  /**
   * Calls `ended` once after the exit of any process, child or not, even if it is still a zombie.
   * If it has already exited or its pid was reused, `ended` is called in the next turn of the event
   * loop. Keeps Node alive as a child process does. Returns a function that ends the watch.
   */
  watchProcess(
    watched: { readonly pid: number; readonly startTime?: string | undefined },
    ended: () => void,
  ): () => void {
    const stop = this.#native.watchProcess(watched.pid, ended);
    // Checked after the watch has begun, so that a reuse of the pid cannot be missed.
    if (
      watched.startTime === undefined ||
      identifyProcess(watched.pid).startTime === watched.startTime
    )
      return stop;
    stop();
    const soon = setImmediate(ended);
    return () => clearImmediate(soon);
  }

  /**
   * Sends `payload` with copies of `descriptors` (16 at most) over a Unix socket, in one packet.
   * Waits at most `patienceMs` milliseconds for buffer space.
   * @throws if the peer is gone or does not read
   */
  sendDescriptors(
    fd: number,
    payload: Uint8Array,
    descriptors: readonly number[],
    patienceMs = 0,
  ): void {
    this.#native.sendDescriptors(fd, payload, descriptors, patienceMs);
  }

  /**
   * Two connected SOCK_SEQPACKET sockets. Child processes inherit them by `stdio` only. The caller
   * closes both.
   */
  socketPair(): [number, number] {
    return this.#native.socketPair();
  }

  /**
   * A datagram socket at this absolute path, for a child process. The caller closes it, and removes
   * the file.
   */
  commandSocket(path: string): number {
    return this.#native.commandSocket(path);
  }

  /**
   * Sends a datagram with copies of `descriptors` to such a socket. Nothing can be sent back, so a
   * hostile receiver cannot pass descriptors.
   * @throws if no process has the socket, or its queue is full
   */
  sendCommand(path: string, payload: Uint8Array, descriptors: readonly number[]): void {
    this.#native.sendCommand(path, payload, descriptors);
  }

  /**
   * A memory file of this size, which cannot change. It has no pages: each is charged to the cgroup
   * of the process that touches it first. The caller closes it.
   */
  memoryFile(bytes: number): number {
    return this.#native.memoryFile(bytes);
  }

  /** The kernel's handle of a memory file, for findMemoryFile(), also of later processes. */
  memoryFileHandle(fd: number): string {
    return this.#native.memoryFileHandle(fd);
  }

  /**
   * A descriptor of the memory file, whichever process has it, which the caller closes; undefined
   * once the kernel has freed the file.
   * @throws EPERM without CAP_DAC_READ_SEARCH
   */
  findMemoryFile(handle: string): number | undefined {
    return this.#native.findMemoryFile(handle);
  }

  /**
   * A directory in memory for files of so many bytes. It has no path, and ends with the last
   * process that has a descriptor of it. The caller closes it. @throws EPERM without CAP_SYS_ADMIN
   */
  memoryDirectory(bytes: number): number {
    return this.#native.memoryDirectory(bytes);
  }

  /** The read end and the write end of a pipe. The caller closes both. */
  pipe(): [number, number] {
    return this.#native.pipe();
  }

  /**
   * Takes an exclusive flock; false if another open file holds it. The lock is released when the
   * descriptor is closed or this process exits.
   */
  lockFile(fd: number): boolean {
    return this.#native.lockFile(fd);
  }
}

/**
 * Clears O_NONBLOCK, which Node sets and a child process inherits. Workers use blocking calls.
 */
export function makeBlocking(socket: Socket): void {
  handleOf(socket).setBlocking(true);
}

/** The file descriptor of a socket or of a listening server, which still owns it. */
export function descriptorOf(socket: Socket | Server): number {
  return handleOf(socket).fd;
}

interface Handle {
  readonly fd: number;
  setBlocking(blocking: boolean): number;
}

/**
 * The internal handle of a net.Socket or net.Server. Node has no public API for its descriptor; the
 * names are the same since the first releases. Used in this file only.
 */
function handleOf(socket: Socket | Server): Handle {
  return (socket as unknown as { _handle: Handle })._handle;
}
