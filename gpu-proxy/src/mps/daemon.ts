import type { ChildProcess } from 'node:child_process';
import { chownSync, mkdirSync, statSync } from 'node:fs';
import path from 'node:path';
import type { GpuRecord } from '@nvidia-virtual/ledger';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { checkSocketPath } from '@nvidia-virtual/service/socket';
import { Supervisor } from '@nvidia-virtual/service/supervisor';
import type { Logger } from 'pino';
import type { Addon } from '../host/addon.js';
import { MpsControl, type MpsProgram } from './control.js';

interface MpsDaemonOptions extends MpsProgram {
  readonly gpu: GpuRecord;
  /** Used by this daemon only. Its content outlives this process. */
  readonly directory: string;
  /** User id of the workers and the server; undefined: that of this process. */
  readonly uid: number | undefined;
  readonly addon: Addon;
  readonly logger: Logger;
  /** Called when the daemon answers, so workers may start. */
  ready(): void;
  /** Called when a lost daemon is restarted. */
  restarted(): void;
}

const ASK_EVERY_MS = 100;

/**
 * Supervises the MPS control daemon of one GPU. Like the arbiter, the daemon outlives gpu-proxy,
 * and a running one is reused. The daemon starts the server on request of the first worker.
 */
export class MpsDaemon {
  readonly #options: MpsDaemonOptions;
  readonly #control: MpsControl;
  readonly #logger: Logger;
  #process: ChildProcess | undefined;
  #unwatch: (() => void) | undefined;
  readonly #supervisor = new Supervisor(() => {
    this.#options.restarted();
    this.#begin();
  });
  /** Start time in milliseconds, as in Date.now(); 0: not running. */
  #begun = 0;
  #ready = false;
  #ended = false;

  /**
   * @throws ProxyError SOCKET_PATH_LONG, STATE_NOT_USABLE, or a system error if the directory
   * cannot be created
   */
  constructor(options: MpsDaemonOptions) {
    this.#options = options;
    this.#control = new MpsControl(options, options.directory, options.gpu.uuid);
    this.#logger = options.logger.child({ gpu: options.gpu.uuid });
    checkSocketPath(path.join(this.#control.pipes, 'control_privileged'));
    this.#makeDirectories();
    this.#begin();
  }

  /** The directory where its clients connect. */
  get pipes(): string {
    return this.#control.pipes;
  }

  get gpu(): GpuRecord {
    return this.#options.gpu;
  }

  /**
   * True if it answered since it was started or found. Workers must wait for it: without a daemon,
   * the driver silently runs them without MPS.
   */
  get ready(): boolean {
    return this.#ready;
  }

  /** Detaches this gpu-proxy. The daemon continues for its workers and the next gpu-proxy. */
  leave(): void {
    this.#ended = true;
    this.#supervisor.stop();
    this.#unwatch?.();
    this.#process?.removeAllListeners().unref();
  }

  /** Terminates it and its server. */
  end(): void {
    this.leave();
    this.#control.quit();
  }

  /** Other users may pass through: workers and server may run as another user. */
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
      if (found)
        this.#unwatch = this.#options.addon.watchProcess(found, () =>
          this.#lose('its exit status is unknown'),
        );
      else this.#start();
    } catch (error) {
      this.#lose(systemReason(error));
      return;
    }
    void this.#ask();
  }

  #start(): void {
    const { command, env } = this.#control.daemon;
    const log = path.join(this.#options.directory, 'daemon.log');
    this.#process = this.#supervisor.spawn(command, log, (reason) => this.#lose(reason), { env });
  }

  /** Polls until it answers or is gone. */
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
    const healthySince = this.#ready ? this.#begun : undefined;
    this.#ready = false;
    this.#begun = 0;
    this.#logger.error(
      `The MPS control daemon of GPU ${this.gpu.index} ended: ${reason}. ` +
        'It is restarted, and new programs wait for it. Running programs continue if their MPS ' +
        'server still runs. Otherwise their next CUDA call fails: start them again.',
    );
    this.#supervisor.restart(healthySince);
  }
}

/** Checks that `uid` can reach the directory. Otherwise the driver silently runs without MPS. */
function requirePassage(directory: string, uid: number): void {
  for (let each = path.dirname(directory); each !== path.dirname(each); each = path.dirname(each)) {
    const { mode, uid: owner } = statSync(each);
    if ((mode & 0o001) !== 0 || (owner === uid && (mode & 0o100) !== 0)) continue;
    throw new ProxyError('STATE_NOT_USABLE', {
      path: directory,
      reason: `workers run as user ${uid}, who may not enter ${each}`,
    });
  }
}
