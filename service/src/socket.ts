import { lstatSync, rmSync } from 'node:fs';
import { createConnection, type Server } from 'node:net';
import { ProxyError, systemReason } from './errors.js';

/** sun_path has 108 bytes including the terminating zero. */
const PATH_LIMIT = 107;

export function checkSocketPath(path: string): void {
  const bytes = Buffer.byteLength(path);
  if (bytes > PATH_LIMIT)
    throw new ProxyError('SOCKET_PATH_LONG', { path, bytes, limit: PATH_LIMIT });
}

/**
 * Listens on a socket that has these permissions from its creation: between bind and chmod, other
 * users could connect.
 */
export function listenAt(server: Server, path: string, mode: number): Promise<void> {
  const former = process.umask(0o777 & ~mode);
  try {
    return new Promise((resolve, reject) => server.once('error', reject).listen(path, resolve));
  } finally {
    process.umask(former);
  }
}

/** Undefined if a process listens on the socket, otherwise the reason. */
export function whyNotServed(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const probe = createConnection(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(undefined);
    });
    probe.once('error', (error) => resolve(systemReason(error)));
  });
}

/**
 * Removes the stale socket of a killed process. Refuses to remove a served socket or another file.
 */
export async function clearStaleSocket(path: string): Promise<void> {
  const file = lstatSync(path, { throwIfNoEntry: false });
  if (!file) return;
  if (!file.isSocket())
    throw new ProxyError('SOCKET_NOT_MADE', {
      path,
      reason: 'the path exists and is not a socket',
    });
  if ((await whyNotServed(path)) === undefined) throw new ProxyError('SOCKET_BUSY', { path });
  rmSync(path);
}
