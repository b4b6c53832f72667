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
  return (socket) => addon.peerCredentials(descriptorOf(socket));
}

/**
 * Node shows no file descriptor of a net.Socket; its internal handle has it, and has had it under this name since the first releases.
 * This is the only place that knows.
 */
function descriptorOf(socket: Socket): number {
  return (socket as unknown as { _handle: { fd: number } })._handle.fd;
}
