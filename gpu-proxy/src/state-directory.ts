import { existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ProxyError, systemReason } from './errors.js';
import { readIfThere, removeUnfinished } from './files.js';
import { forgetFormerBoot } from './former-boot.js';
import { GRANT } from './grant.js';
import { makePrivateDirectory } from './private-directory.js';
import { identifyProcess, isAlive, type ProcessIdentity, readBootId } from './process-table.js';

export const DEFAULT_STATE = '/run/nvidia-virtual';
/** In the directory of an allocation: without it, there is none yet, or none any more. */
export const SPECIFICATION = 'allocation.json';

/** What was begun within this time may be a grant that the device plugin makes just now. */
const UNDER_WAY_MS = 10 * 60_000;

/**
 * Where a node keeps what outlives its process: one directory per allocation, the sockets of the admin API and of the arbiter, and a lock.
 * Others may pass through it but not list it: the id of an allocation is what leads to its socket.
 */
export class StateDirectory {
  readonly adminSocket: string;
  readonly arbiterSocket: string;
  readonly allocations: string;
  /** What the next proxy goes on counting from. */
  readonly metrics: string;
  /** Of GPUs in concurrent mode. */
  readonly mps: string;
  /** Of links to the driver's libraries. */
  readonly driver: string;

  readonly #bootId: string;
  #held = true;
  #sweeping: NodeJS.Timeout | undefined;

  private constructor(
    readonly directory: string,
    /** It is of one proxy only, and goes with it. */
    readonly temporary: boolean,
    bootId: string,
  ) {
    this.#bootId = bootId;
    this.adminSocket = adminSocketIn(directory);
    this.arbiterSocket = path.join(directory, 'arbiter.sock');
    this.allocations = path.join(directory, 'allocations');
    this.metrics = path.join(directory, 'metrics.json');
    this.mps = path.join(directory, 'mps');
    this.driver = path.join(directory, 'driver');
  }

  /**
   * Makes it where it is missing, and takes its lock.
   * @param bootId of this boot of the machine: what processes of another one left is forgotten.
   * @throws ProxyError STATE_BUSY, STATE_NOT_USABLE
   */
  static open(directory: string, bootId = readBootId()): StateDirectory {
    const state = new StateDirectory(path.resolve(directory), false, bootId);
    try {
      mkdirSync(state.allocations, { recursive: true, mode: 0o711 });
      state.#lock();
      state.#removeFormerTries();
      forgetFormerBoot(state.directory, bootId);
      removeUnfinished(state.allocations, UNDER_WAY_MS);
      state.#sweeping = setInterval(() => state.#sweep(), UNDER_WAY_MS).unref();
      return state;
    } catch (error) {
      if (error instanceof ProxyError) throw error;
      throw new ProxyError('STATE_NOT_USABLE', { path: state.directory, reason: systemReason(error) });
    }
  }

  /** One that only this proxy knows. */
  static makeTemporary(): StateDirectory {
    const state = new StateDirectory(makePrivateDirectory(), true, readBootId());
    mkdirSync(state.allocations);
    return state;
  }

  /** The ids of all directories that are there. */
  ids(): string[] {
    return readdirSync(this.allocations).filter((name) => /^[0-9a-f]{16}$/.test(name));
  }

  /** Those of allocations: a grant that nobody has used yet is none. */
  allocationIds(): string[] {
    const has = (id: string, file: string) => existsSync(path.join(this.allocations, id, file));
    return this.ids().filter((id) => has(id, SPECIFICATION) || !has(id, GRANT));
  }

  /** Gives the lock back; a temporary one goes with all that is in it. */
  release(): void {
    if (!this.#held) return;
    this.#held = false;
    clearInterval(this.#sweeping);
    rmSync(this.temporary ? this.directory : this.#lockFile, { recursive: true, force: true });
  }

  get #lockFile(): string {
    return path.join(this.directory, 'lock');
  }

  /** The lock names a process by pid, start time and boot. One that a dead process left is moved away; who moved a living one puts it back. */
  #lock(): void {
    const mine = path.join(this.directory, `.lock-${process.pid}`);
    const stale = `${mine}-stale`;
    writeFileSync(mine, `${process.pid} ${identifyProcess(process.pid).startTime} ${this.#bootId}\n`, { mode: 0o600 });
    try {
      for (;;) {
        if (tryLink(mine, this.#lockFile)) return;
        const seen = readIfThere(this.#lockFile);
        if (seen === undefined) continue;
        this.#refuseIfHeld(seen);
        if (!tryRename(this.#lockFile, stale)) continue;
        const moved = readIfThere(stale);
        if (moved === seen) continue;
        tryLink(stale, this.#lockFile);
        this.#refuseIfHeld(moved ?? '');
      }
    } finally {
      rmSync(mine, { force: true });
      rmSync(stale, { force: true });
    }
  }

  #refuseIfHeld(lock: string): void {
    const pid = this.#holderIn(lock);
    if (pid !== undefined) throw new ProxyError('STATE_BUSY', { path: this.directory, pid });
  }

  /** The process that a lock names, while it lives. */
  #holderIn(lock: string): number | undefined {
    const [pid, startTime, boot = this.#bootId] = lock.trim().split(' ');
    const holder: ProcessIdentity = { pid: Number(pid), startTime, program: '' };
    return startTime !== undefined && boot === this.#bootId && isAlive(holder) ? holder.pid : undefined;
  }

  /** What proxies left that were killed while they tried to take the lock. One that tries just now has its own file before the stale one, and not after it. */
  #removeFormerTries(): void {
    for (const name of readdirSync(this.directory)) {
      const [, file, pid] = /^(\.lock-(\d+))(-stale)?$/.exec(name) ?? [];
      if (file !== undefined && !this.#tries(Number(pid), readIfThere(path.join(this.directory, file))))
        rmSync(path.join(this.directory, name), { force: true });
    }
  }

  /** @param lock its own; nothing stands in it for a moment when it is new. */
  #tries(pid: number, lock: string | undefined): boolean {
    if (lock === '') return identifyProcess(pid).startTime !== undefined;
    return lock !== undefined && this.#holderIn(lock) !== undefined;
  }

  /** What was under way when the proxy before was killed, and what a device plugin that was killed left since. */
  #sweep(): void {
    try {
      removeUnfinished(this.allocations, UNDER_WAY_MS);
    } catch {
      // It is in nobody's way, and the next time comes.
    }
  }
}

export function adminSocketIn(state: string): string {
  return path.join(path.resolve(state), 'admin.sock');
}

function tryLink(from: string, to: string): boolean {
  return trySystemCall('EEXIST', () => linkSync(from, to));
}

function tryRename(from: string, to: string): boolean {
  return trySystemCall('ENOENT', () => renameSync(from, to));
}

/** False when it fails with exactly this. */
function trySystemCall(code: string, call: () => void): boolean {
  try {
    call();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === code) return false;
    throw error;
  }
}
