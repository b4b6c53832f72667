import { spawn } from 'node:child_process';
import { closeSync, rmSync } from 'node:fs';
import {
  findProcesses,
  identifyProcess,
  type ProcessIdentity,
  userOf,
} from '@nvidia-virtual/service/process-table';
import type { Addon } from '../host/addon.js';
import type { Installation } from '../host/installation.js';
import type { Launcher } from '../host/launcher.js';
import {
  type KeeperCommand,
  sendWorkerCommand,
  type WorkerAnswer,
} from '../workers/worker-commands.js';

interface KeeperOptions {
  readonly installation: Pick<Installation, 'keeper'>;
  readonly launcher: Launcher;
  readonly addon: Addon;
  /** Path of the socket on which it receives commands. */
  readonly socket: string;
}

/** The driver may take as long to bring a process back. */
const GIVE_MS = 60_000;

/**
 * Starts a process that holds the files of a parked worker, and outlives this gpu-proxy.
 * @throws Error if it does not start
 */
export async function startKeeper(
  worker: number,
  options: KeeperOptions,
): Promise<ProcessIdentity> {
  const { installation, launcher, addon, socket } = options;
  rmSync(socket, { force: true });
  const commands = addon.commandSocket(socket);
  try {
    const [file, args] = launcher.command(
      installation.keeper,
      words(worker, socket),
      'node service',
    );
    const stdio = ['ignore', 'ignore', 'ignore', commands] as const;
    const child = spawn(file, args, { stdio: [...stdio], detached: true });
    child.on('error', () => {}).unref();
    if (child.pid === undefined) throw new Error('the keeper of its files does not start');
    return identifyProcess(child.pid);
  } finally {
    closeSync(commands);
  }
}

/** Finds keepers whose gpu-proxy was killed before it had saved their pid. */
export function findKeepers(worker: number, socket: string): ProcessIdentity[] {
  return findProcesses(...words(worker, socket)).filter(({ pid }) => userOf(pid) === 0);
}

/** Another session may have had a worker of this pid. */
function words(worker: number, socket: string): [string, string] {
  return [String(worker), socket];
}

export async function tellKeeper(
  { addon, socket }: Pick<KeeperOptions, 'addon' | 'socket'>,
  command: KeeperCommand,
  file?: number,
): Promise<WorkerAnswer> {
  const timeoutMs = command.startsWith('give') ? GIVE_MS : 0;
  return sendWorkerCommand(addon, socket, command, { timeoutMs, file });
}
