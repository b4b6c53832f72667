import { type ChildProcess, spawn } from 'node:child_process';
import { chownSync, closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import path from 'node:path';
import type { GpuRecord } from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import type { Addon } from './addon.js';
import { ProxyError, systemReason } from './errors.js';
import { readIfThere } from './files.js';
import { MpsControl, type MpsProgram } from './mps-control.js';
import { checkSocketPath } from './socket.js';

export interface MpsDaemonOptions extends MpsProgram {
  readonly gpu: GpuRecord;
  /** Its own; what is in it outlives this process. */
  readonly directory: string;
  /** As whom the workers run, and with them the server; undefined: as this process. */
  readonly uid: number | undefined;
  readonly addon: Addon;
  readonly logger: Logger;
  /** It answers: workers may start. */
  ready(): void;
  /** One that was there is gone, and another is started. */
  restarted(): void;
}

const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 5000;
/** One that lived so long may be started again at once. */
const HEALTHY_MS = 10_000;
const ASK_EVERY_MS = 100;

/**
 * Keeps MPS' control daemon of one GPU running. Like the arbiter it is a process of its own that outlives this one, and one that is there is
 * taken as it is; the daemon starts the server when the first worker asks it for one.
 */
export class MpsDaemon {
  readonly #options: MpsDaemonOptions;
  readonly #control: MpsControl;
  readonly #logger: Logger;
  #process: ChildProcess | undefined;
  #unwatch: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #retry = FIRST_RETRY_MS;
  /** In milliseconds, as Date.now() has them. */
  #begun = 0;
  #ready = false;
  #ended = false;

  /** @throws ProxyError SOCKET_PATH_LONG, STATE_NOT_USABLE, or a system error when the directory cannot be made. */
  constructor(options: MpsDaemonOptions) {
    this.#options = options;
    this.#control = new MpsControl(options, options.directory, options.gpu.uuid);
    this.#logger = options.logger.child({ gpu: options.gpu.uuid });
    checkSocketPath(path.join(this.#control.pipes, 'control_privileged'));
    this.#makeDirectories();
    this.#begin();
  }

  /** Where its clients find it. */
  get pipes(): string {
    return this.#control.pipes;
  }

  get gpu(): GpuRecord {
    return this.#options.gpu;
  }

  /** It answered since it was started or found. A driver that finds nobody there would go on without MPS, and say nothing. */
  get ready(): boolean {
    return this.#ready;
  }

  /** It goes on, for the workers that are left and for the next proxy. */
  leave(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#unwatch?.();
    this.#process?.removeAllListeners().unref();
  }

  /** Ends it, and its server with it. */
  end(): void {
    this.leave();
    this.#control.quit();
  }

  /** Others pass through: workers and server may run as another user. */
  #makeDirectories(): void {
    const { directory, uid } = this.#options;
    mkdirSync(directory, { recursive: true, mode: 0o711 });
    for (const each of [this.#control.pipes, this.#control.logs]) {
      mkdirSync(each, { recursive: true, mode: 0o755 });
      if (uid !== undefined) chownSync(each, uid, uid);
    }
    if (uid !== undefined) requirePassage(this.#control.pipes, uid);
  }

  #begin(): void {
    this.#begun = Date.now();
    try {
      const found = this.#control.find();
      if (found) this.#unwatch = this.#options.addon.watchProcess(found, () => this.#lose('nobody saw how'));
      else this.#start();
    } catch (error) {
      this.#lose(systemReason(error));
      return;
    }
    void this.#ask();
  }

  #start(): void {
    const log = path.join(this.#options.directory, 'daemon.log');
    const fd = openSync(log, 'w', 0o600);
    try {
      const { command, env } = this.#control.daemon;
      const child = spawn(...command, { env, stdio: ['ignore', fd, fd], detached: true });
      this.#process = child;
      child.once('error', (error) => this.#lose(error.message));
      child.once('exit', (status, signal) => this.#lose(lastLine(log) ?? `${signal ?? `status ${status}`}`));
    } finally {
      closeSync(fd);
    }
  }

  /** Until it answers, or is gone. */
  async #ask(): Promise<void> {
    const begun = this.#begun;
    while (!this.#ended && this.#begun === begun) {
      if (await this.#control.answers()) return this.#noteReady(begun);
      await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS).unref());
    }
  }

  #noteReady(begun: number): void {
    if (this.#ended || this.#begun !== begun) return;
    this.#ready = true;
    this.#options.ready();
  }

  #lose(reason: string): void {
    if (this.#ended) return;
    this.#process = undefined;
    this.#unwatch = undefined;
    if (this.#ready && Date.now() - this.#begun > HEALTHY_MS) this.#retry = FIRST_RETRY_MS;
    this.#ready = false;
    this.#begun = 0;
    this.#logger.error(
      `The MPS control daemon of GPU ${this.gpu.index} ended: ${reason}. It is started again, and programs that start wait for it. Those that run may go on as long as their MPS server does; if it ended too, their next CUDA call fails, and they have to be started again.`,
    );
    this.#timer = setTimeout(() => {
      this.#options.restarted();
      this.#begin();
    }, this.#retry);
    this.#retry = Math.min(LONGEST_RETRY_MS, this.#retry * 2);
  }
}

/** Else the driver would go on without MPS. */
function requirePassage(directory: string, uid: number): void {
  for (let each = path.dirname(directory); each !== path.dirname(each); each = path.dirname(each)) {
    const { mode, uid: owner } = statSync(each);
    if ((mode & 0o001) !== 0 || (owner === uid && (mode & 0o100) !== 0)) continue;
    throw new ProxyError('STATE_NOT_USABLE', { path: directory, reason: `user ${uid}, as whom workers run, may not pass through ${each}` });
  }
}

function lastLine(file: string): string | undefined {
  return readIfThere(file)?.trim().split('\n').at(-1) || undefined;
}
