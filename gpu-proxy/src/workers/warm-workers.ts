import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { GpuRecord } from '@nvidia-virtual/ledger';
import { RetryTimer } from '@nvidia-virtual/service/backoff';
import { systemReason } from '@nvidia-virtual/service/errors';
import { identifyProcess } from '@nvidia-virtual/service/process-table';
import type { Logger } from 'pino';
import { type Backend, driverArguments } from '../gpus/backend.js';
import { type Addon, descriptorOf, makeBlocking } from '../host/addon.js';
import type { Launcher } from '../host/launcher.js';
import { killWithoutWaiting } from '../host/run-command.js';
import { parseReport } from '../sessions/session.js';
import {
  ChildWorker,
  closeFiles,
  otherPlaceArguments,
  type Worker,
  type WorkerFiles,
  type WorkerListener,
  type WorkerOptions,
  workerArguments,
} from './worker.js';

export interface WarmWorkersOptions {
  /** Path of nvidia-virtual-worker. */
  readonly executable: string;
  readonly backend: Backend;
  readonly addon: Addon;
  readonly launcher: Launcher;
  readonly logger: Logger;
  /** UUIDs of GPUs to which their sessions may move. By default none. */
  otherPlaces?(): readonly string[];
}

const BACKOFF = { first: 1000, longest: 60_000 };

/**
 * A pool of idle workers with a ready context on one GPU. Each serves one client, and a new worker
 * replaces it.
 */
export class WarmWorkers {
  readonly #options: WarmWorkersOptions;
  readonly #gpu: GpuRecord;
  readonly #waiting = new Set<WarmWorker>();
  #wanted = 0;
  readonly #retry = new RetryTimer(() => this.#fill(), BACKOFF);

  constructor(gpu: GpuRecord, options: WarmWorkersOptions) {
    this.#gpu = gpu;
    this.#options = options;
  }

  /** Target size of the pool. */
  get wanted(): number {
    return this.#wanted;
  }

  /** Number of workers with a ready context. */
  get ready(): number {
    return [...this.#waiting].filter(({ warm }) => warm).length;
  }

  set wanted(count: number) {
    this.#wanted = count;
    const [...all] = this.#waiting;
    for (const worker of all.slice(count)) this.#dismiss(worker);
    this.#fill();
  }

  /** Removes a ready worker from the pool and returns it; undefined: none is ready. */
  take(): WarmWorker | undefined {
    const worker = [...this.#waiting].find(({ warm }) => warm);
    if (!worker) return undefined;
    this.#waiting.delete(worker);
    this.#fill();
    return worker;
  }

  /** Replaces all workers, whose rooms are of other settings. */
  renew(): void {
    for (const worker of this.#waiting) this.#dismiss(worker);
    this.#fill();
  }

  /** Dismisses all workers. */
  end(): void {
    this.#wanted = 0;
    this.#retry.cancel();
    for (const worker of this.#waiting) this.#dismiss(worker);
  }

  #dismiss(worker: WarmWorker): void {
    this.#waiting.delete(worker);
    worker.dismiss();
  }

  #fill(): void {
    while (this.#waiting.size < this.#wanted && !this.#retry.pending) {
      try {
        const worker = new WarmWorker(this.#gpu, this.#options, (reason) =>
          this.#lose(worker, reason),
        );
        this.#waiting.add(worker);
      } catch (error) {
        this.#tryLater(`does not start: ${systemReason(error)}`);
      }
    }
  }

  #lose(worker: WarmWorker, reason: string): void {
    if (!this.#waiting.has(worker)) return;
    this.#dismiss(worker);
    if (worker.warm) this.#retry.reset();
    this.#tryLater(`ended: ${reason}`);
  }

  /** Schedules a restart with backoff. */
  #tryLater(what: string): void {
    this.#options.logger.warn({ gpu: this.#gpu.uuid }, `a warm worker ${what}`);
    this.#retry.schedule();
  }
}

export class WarmWorker {
  readonly identity: { readonly pid: number; readonly startTime: string };
  /** True when its context is ready. */
  warm = false;
  readonly #process: ChildProcess;
  readonly #addon: Addon;
  readonly #control: number;
  #mine = true;
  #words = '';

  constructor(
    gpu: GpuRecord,
    { executable, backend, addon, launcher, otherPlaces = () => [] }: WarmWorkersOptions,
    ended: (reason: string) => void,
  ) {
    const [file, args] = launcher.command(
      executable,
      [
        ...['--warm', '--gpu', gpu.uuid],
        ...otherPlaceArguments(otherPlaces()),
        ...driverArguments(backend),
      ],
      {},
    );
    const [control, theirs] = addon.socketPair();
    this.#addon = addon;
    this.#control = control;
    try {
      this.#process = spawn(file, args, {
        stdio: ['ignore', 'ignore', 'pipe', theirs, 'pipe'],
        detached: true,
      });
    } catch (error) {
      this.#letGo();
      throw error;
    } finally {
      closeSync(theirs);
    }
    const pid = this.#process.pid ?? 0;
    this.identity = { pid, startTime: identifyProcess(pid).startTime ?? '' };
    // These pipes are read until assign(), which gives the worker other files.
    readLines(this.#process.stdio[4] as Readable | null, (line) => {
      const report = parseReport(line);
      if (report?.event === 'refused') this.#words = report.sentence;
      this.warm ||= line.includes('"warm"');
    });
    readLines(this.#process.stderr, (line) => {
      this.#words = line;
    });
    this.#process.once('error', (error) => ended(error.message));
    // `close`, not `exit`: after `exit`, its last output may still be unread.
    this.#process.once('close', (status, signal) =>
      ended(this.#words || `${signal ?? `status ${status}`}`),
    );
  }

  /**
   * Makes it the worker of this connection. Closes the files and, on success, the connection.
   * @throws if the worker is gone; the connection stays open then.
   */
  assign(
    options: WorkerOptions,
    connection: Socket,
    files: WorkerFiles,
    listener: WorkerListener,
  ): Worker {
    makeBlocking(connection);
    const words = Buffer.from(workerArguments(options).join('\0'));
    try {
      this.#addon.sendDescriptors(this.#control, words, [
        descriptorOf(connection),
        files.report,
        files.log,
        files.commands,
      ]);
    } finally {
      closeFiles(files);
      this.#letGo();
    }
    connection.destroy();
    return new ChildWorker(this.#process, listener, 'warm');
  }

  /** Closes the control socket. A worker that was not assigned exits then. */
  dismiss(): void {
    this.#letGo();
    this.#process.unref();
  }

  /** Sends SIGKILL. The caller also calls dismiss(). */
  kill(): void {
    killWithoutWaiting(this.#process);
  }

  #letGo(): void {
    if (this.#mine) closeSync(this.#control);
    this.#mine = false;
  }
}

function readLines(stream: Readable | null, take: (line: string) => void): void {
  if (!stream) return;
  stream.on('error', () => stream.destroy());
  createInterface({ input: stream }).on('line', take);
}
