import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { identifyProcess } from './process-table.js';

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
  watchProcess(pid: number, ended: () => void): () => void;
  sendDescriptors(fd: number, payload: Uint8Array, descriptors: readonly number[]): void;
  socketPair(): [number, number];
}

/** What Node cannot do itself. */
export class Addon {
  readonly #native: NativeAddon;

  constructor(path: string) {
    this.#native = createRequire(import.meta.url)(path) as NativeAddon;
  }

  /** @throws for a socket that is closed or no Unix socket. */
  peerCredentials(socket: Socket): PeerCredentials {
    return this.#native.peerCredentials(descriptorOf(socket));
  }

  /** A new descriptor that stands for the process that connected, whatever becomes of its pid; undefined before Linux 6.5. The caller closes it. */
  peerPidfd(socket: Socket): number | undefined {
    return this.#native.peerPidfd(descriptorOf(socket));
  }

  /**
   * Calls `ended` once when the process has exited, also when nobody waits for it and when it is no child; soon, when it is gone already or
   * its pid belongs to another by now. Keeps Node alive as a child process does. What is returned ends the watch.
   */
  watchProcess(watched: { readonly pid: number; readonly startTime?: string | undefined }, ended: () => void): () => void {
    const stop = this.#native.watchProcess(watched.pid, ended);
    // Asked after the watch has begun: from then on the pid cannot come to mean another process unseen.
    if (watched.startTime === undefined || identifyProcess(watched.pid).startTime === watched.startTime) return stop;
    stop();
    const soon = setImmediate(ended);
    return () => clearImmediate(soon);
  }

  /**
   * Sends `payload` with copies of `descriptors` (16 at most) over a Unix socket, in one piece and without waiting.
   * @throws when the other end is gone, or takes nothing at the moment.
   */
  sendDescriptors(fd: number, payload: Uint8Array, descriptors: readonly number[]): void {
    this.#native.sendDescriptors(fd, payload, descriptors);
  }

  /** Two connected SOCK_SEQPACKET sockets, which children inherit only by `stdio`. The caller closes both. */
  socketPair(): [number, number] {
    return this.#native.socketPair();
  }
}

/** Node accepts sockets as non-blocking, which whoever inherits one shares; a worker waits in its calls. */
export function makeBlocking(socket: Socket): void {
  handleOf(socket).setBlocking(true);
}

/** The file descriptor of a socket; it stays the socket's. */
export function descriptorOf(socket: Socket): number {
  return handleOf(socket).fd;
}

interface Handle {
  readonly fd: number;
  setBlocking(blocking: boolean): number;
}

/**
 * Node shows neither of these of a net.Socket; its internal handle has them, and has had them under these names since the first releases.
 * This is the only place that knows.
 */
function handleOf(socket: Socket): Handle {
  return (socket as unknown as { _handle: Handle })._handle;
}
