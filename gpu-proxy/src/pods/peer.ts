import { closeSync, readFileSync, readlinkSync } from 'node:fs';
import type { Socket } from 'node:net';
import path from 'node:path';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { identifyProcess } from '@nvidia-virtual/service/process-table';
import type { Addon } from '../host/addon.js';
import { type ContainerIdentity, readCgroup } from './cgroup.js';

/** The process at the other end of a connection, in a container of a pod. */
export interface Peer extends ContainerIdentity {
  readonly pid: number;
}

/**
 * Host processes of sandboxed containers: the gVisor kernel, virtual machine monitors, and their
 * file servers.
 */
const SANDBOX =
  /^(runsc|qemu-|cloud-hypervisor|firecracker|dragonball|virtiofsd|containerd-shim-kata|kata-)/;

/** @throws ProxyError PEER_SANDBOXED, PEER_OUTSIDE, PEER_GONE */
export function identifyPeer(addon: Addon, connection: Socket, read = readCgroup): Peer {
  const { pid } = addon.peerCredentials(connection);
  const alive = lifeOf(addon, connection, pid);
  try {
    const program = programOf(pid);
    if (SANDBOX.test(program)) throw new ProxyError('PEER_SANDBOXED', { pid, program });
    const identity = read(pid);
    if (!alive.goesOn()) throw new ProxyError('PEER_GONE', { pid });
    if (!identity) throw new ProxyError('PEER_OUTSIDE', { pid, program });
    return { pid, ...identity };
  } catch (error) {
    if (error instanceof ProxyError) throw error;
    throw new ProxyError('PEER_GONE', { pid });
  } finally {
    alive.end();
  }
}

/**
 * Detects a reused pid of the process that connected. Before Linux 6.5 there is no pidfd of a peer;
 * then the start time must stay the same. A reuse between the connection and this call is not
 * detected, but would require a wrap-around of all pids.
 */
function lifeOf(addon: Addon, connection: Socket, pid: number): { goesOn(): boolean; end(): void } {
  const pidfd = addon.peerPidfd(connection);
  if (pidfd !== undefined)
    return { goesOn: () => pidOf(pidfd) === pid, end: () => closeSync(pidfd) };
  const { startTime } = identifyProcess(pid);
  return {
    goesOn: () => startTime !== undefined && identifyProcess(pid).startTime === startTime,
    end: () => {},
  };
}

/** -1 after the process has exited and was reaped. */
function pidOf(pidfd: number): number {
  return Number(/^Pid:\s*(-?\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${pidfd}`, 'utf8'))?.[1]);
}

function programOf(pid: number): string {
  return path.basename(readlinkSync(`/proc/${pid}/exe`));
}
