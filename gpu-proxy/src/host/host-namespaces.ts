import { constants, openSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import path from 'node:path';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import type { Addon } from './addon.js';

/**
 * Paths to the host's namespaces and files, for this process and its children. Valid while this
 * process lives.
 */
export interface HostNamespaces {
  readonly mounts: string;
  readonly cgroups: string;
  /** Root directory of the host. */
  readonly root: string;
}

const INIT = 1;

/**
 * Opens the namespaces of the host's init process. If that is not permitted, those of the kubelet,
 * found by its pod-resources socket. They stay open, so a restart of the kubelet is harmless.
 * @throws ProxyError HOST_NOT_REACHED
 */
export async function findHostNamespaces(
  addon: Addon,
  kubeletRoot: string,
): Promise<HostNamespaces> {
  const reasons: string[] = [];
  for (const find of [
    () => INIT,
    () => serverOf(addon, path.join(kubeletRoot, 'pod-resources', 'kubelet.sock')),
  ]) {
    try {
      return openNamespaces(await find());
    } catch (error) {
      reasons.push(systemReason(error));
    }
  }
  throw new ProxyError('HOST_NOT_REACHED', { reason: reasons.join('; ') });
}

function openNamespaces(pid: number): HostNamespaces {
  const open = (name: string, flags = constants.O_RDONLY) =>
    `/proc/${process.pid}/fd/${openSync(`/proc/${pid}/${name}`, flags)}`;
  return {
    mounts: open('ns/mnt'),
    cgroups: open('ns/cgroup'),
    root: open('root', constants.O_DIRECTORY),
  };
}

/** The pid of the process that listens on a socket. */
async function serverOf(addon: Addon, socket: string): Promise<number> {
  const connection = await connect(socket);
  try {
    return addon.peerCredentials(connection).pid;
  } finally {
    connection.destroy();
  }
}

function connect(socket: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const connection = createConnection(socket, () => resolve(connection));
    connection.once('error', reject);
  });
}
