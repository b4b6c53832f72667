import {
  closeSync,
  constants,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import type { SessionRecord } from '@nvidia-virtual/ledger';
import { GRANT } from '@nvidia-virtual/node-state/grant';
import {
  adminSocketIn,
  allocationsIn,
  arbiterSocketIn,
  SPECIFICATION,
  sessionDirectories,
} from '@nvidia-virtual/node-state/paths';
import { readSession } from '@nvidia-virtual/node-state/specification';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { readIfThere, removeUnfinished } from '@nvidia-virtual/service/files';
import { makePrivateDirectory } from '@nvidia-virtual/service/private-directory';
import { identifyProcess, readBootId } from '@nvidia-virtual/service/process-table';
import type { Addon } from './addon.js';
import { removeSessionsOfPreviousBoot } from './previous-boot.js';

/** Younger incomplete entries may be grants that the device plugin is creating. */
const UNDER_WAY_MS = 10 * 60_000;
const LOCK_ATTEMPTS = 20;
const LOCK_PAUSE_MS = 25;

/**
 * Persistent state of a node: one directory per allocation, the sockets of the admin API and of the
 * arbiter, and a lock. Other users may pass through it but not list it: only those who know the id
 * of an allocation can find its socket.
 */
export class StateDirectory {
  readonly adminSocket: string;
  /** Directory of the arbiter's files. */
  readonly arbiter: string;
  readonly arbiterSocket: string;
  readonly allocations: string;
  /** Record of the host memory of suspended sessions. */
  readonly arenas: string;
  /** MPS directories of GPUs in concurrent mode. */
  readonly mps: string;
  /** Directory of links to the driver's libraries. */
  readonly driver: string;
  /** State of simulated GPUs. */
  readonly simulatedState: string;

  /** Undefined for a temporary directory, which needs no lock. */
  #lockDescriptor: number | undefined;
  #held = true;
  #sweeping: NodeJS.Timeout | undefined;

  private constructor(
    readonly directory: string,
    /** Used by one gpu-proxy only and removed with it. */
    readonly temporary: boolean,
  ) {
    this.adminSocket = adminSocketIn(directory);
    this.arbiter = path.join(directory, 'arbiter');
    this.arbiterSocket = arbiterSocketIn(directory);
    this.allocations = allocationsIn(directory);
    this.arenas = path.join(directory, 'arenas.json');
    this.mps = path.join(directory, 'mps');
    this.driver = path.join(directory, 'driver');
    this.simulatedState = path.join(directory, 'simulated-gpus');
  }

  /**
   * Creates the directory if it is missing, and takes its lock.
   * @param bootId of this boot of the machine; sessions of other boots are removed.
   * @throws ProxyError STATE_BUSY, STATE_NOT_USABLE
   */
  static open(directory: string, addon: Addon, bootId = readBootId()): StateDirectory {
    const state = new StateDirectory(path.resolve(directory), false);
    try {
      mkdirSync(state.allocations, { recursive: true, mode: 0o711 });
      mkdirSync(state.arbiter, { recursive: true, mode: 0o711 });
      state.#lock(addon);
      removeSessionsOfPreviousBoot(state, bootId);
      removeUnfinished(state.allocations, UNDER_WAY_MS);
      state.#sweeping = setInterval(() => state.#sweep(), UNDER_WAY_MS).unref();
      return state;
    } catch (error) {
      if (error instanceof ProxyError) throw error;
      throw new ProxyError('STATE_NOT_USABLE', {
        path: state.directory,
        reason: systemReason(error),
      });
    }
  }

  /** Creates a directory for this gpu-proxy only. */
  static makeTemporary(): StateDirectory {
    const state = new StateDirectory(makePrivateDirectory(), true);
    mkdirSync(state.allocations);
    mkdirSync(state.arbiter);
    return state;
  }

  /** The ids of all allocations and grants. */
  ids(): string[] {
    return readdirSync(this.allocations).filter((name) => /^[0-9a-f]{16}$/.test(name));
  }

  /** The ids of allocations, without unbound grants. */
  allocationIds(): string[] {
    const has = (id: string, file: string) => existsSync(path.join(this.allocations, id, file));
    return this.ids().filter((id) => has(id, SPECIFICATION) || !has(id, GRANT));
  }

  /** The records of all sessions. */
  sessionRecords(): SessionRecord[] {
    return this.allocationIds()
      .flatMap((id) => sessionDirectories(path.join(this.allocations, id)))
      .flatMap((session) => readSession(session) ?? []);
  }

  /** Releases the lock, and removes a temporary directory. */
  release(): void {
    if (!this.#held) return;
    this.#held = false;
    clearInterval(this.#sweeping);
    if (this.#lockDescriptor !== undefined) closeSync(this.#lockDescriptor);
    if (this.temporary) rmSync(this.directory, { recursive: true, force: true });
  }

  /**
   * The lock is the kernel's (flock), so it never outlives its process. The file stays: removing it
   * would let two processes lock two files of one name. Its text names the process that serves, for
   * error messages and for the removal of a node.
   */
  #lock(addon: Addon): void {
    const file = path.join(this.directory, 'lock');
    const fd = openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
    if (!takeLock(fd, addon)) {
      closeSync(fd);
      throw new ProxyError('STATE_BUSY', {
        path: this.directory,
        pid: readIfThere(file)?.split(' ')[0] ?? 'unknown',
      });
    }
    this.#lockDescriptor = fd;
    ftruncateSync(fd);
    writeSync(fd, `${process.pid} ${identifyProcess(process.pid).startTime}\n`, 0);
  }

  /**
   * Removes incomplete entries of a killed gpu-proxy or device plugin.
   */
  #sweep(): void {
    try {
      removeUnfinished(this.allocations, UNDER_WAY_MS);
    } catch {
      // Harmless: the next sweep tries again.
    }
  }
}

/**
 * Retries for half a second: a child of a killed gpu-proxy holds the lock until it calls exec,
 * which takes milliseconds.
 */
function takeLock(fd: number, addon: Addon): boolean {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (let attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
    if (addon.lockFile(fd)) return true;
    Atomics.wait(cell, 0, 0, LOCK_PAUSE_MS);
  }
  return false;
}
