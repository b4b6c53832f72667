import { createRequire } from 'node:module';
import type { Socket } from 'node:net';

/** The process at the other end of a connection, as the kernel recorded it when it connected. */
export interface PeerCredentials {
  readonly pid: number;
  readonly uid: number;
  readonly gid: number;
}

interface Addon {
  peerCredentials(fd: number): PeerCredentials;
}

export type AskPeer = (socket: Socket) => PeerCredentials;

export function loadPeerQuestion(addonPath: string): AskPeer {
  const addon = createRequire(import.meta.url)(addonPath) as Addon;
  return (socket) => addon.peerCredentials(handleOf(socket).fd);
}

/** Node accepts sockets as non-blocking, which whoever inherits one shares; a worker waits in its calls. */
export function makeBlocking(socket: Socket): void {
  handleOf(socket).setBlocking(true);
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
