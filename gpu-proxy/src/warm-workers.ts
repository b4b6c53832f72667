import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { GpuRecord } from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import { type Addon, descriptorOf, makeBlocking } from './addon.js';
import { systemReason } from './errors.js';
import { abandon } from './inquiry.js';
import type { Launcher } from './launcher.js';
import { identifyProcess } from './process-table.js';
import { parseReport } from './session.js';
import { ChildWorker, type Worker, type WorkerFiles, type WorkerListener, type WorkerOptions, workerArguments } from './worker.js';

export interface WarmWorkersOptions {
  /** The worker. */
  readonly executable: string;
  readonly driver: string;
  readonly addon: Addon;
  readonly launcher: Launcher;
  readonly logger: Logger;
}

const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 60_000;

/** Workers that have a context ready on one GPU and wait for a program; each is used once, and another takes its place. */
export class WarmWorkers {
  readonly #options: WarmWorkersOptions;
  readonly #gpu: GpuRecord;
  readonly #waiting = new Set<WarmWorker>();
  #wanted = 0;
  #retry = FIRST_RETRY_MS;
  #timer: NodeJS.Timeout | undefined;

  constructor(gpu: GpuRecord, options: WarmWorkersOptions) {
    this.#gpu = gpu;
    this.#options = options;
  }

  /** How many there are to be. */
  get wanted(): number {
    return this.#wanted;
  }

  /** Those that could serve a program now. */
  get ready(): number {
    return [...this.#waiting].filter(({ warm }) => warm).length;
  }

  set wanted(count: number) {
    this.#wanted = count;
    const [...all] = this.#waiting;
    for (const worker of all.slice(count)) this.#dismiss(worker);
    this.#fill();
  }

  /** One that is ready, which is the caller's from now on. */
  take(): WarmWorker | undefined {
    const worker = [...this.#waiting].find(({ warm }) => warm);
    if (!worker) return undefined;
    this.#waiting.delete(worker);
    this.#fill();
    return worker;
  }

  /** They end. */
  end(): void {
    this.#wanted = 0;
    clearTimeout(this.#timer);
    for (const worker of this.#waiting) this.#dismiss(worker);
  }

  #dismiss(worker: WarmWorker): void {
    this.#waiting.delete(worker);
    worker.dismiss();
  }

  #fill(): void {
    while (this.#waiting.size < this.#wanted && !this.#timer) {
      try {
        const worker = new WarmWorker(this.#gpu, this.#options, (reason) => this.#lose(worker, reason));
        this.#waiting.add(worker);
      } catch (error) {
        this.#tryLater(`does not start: ${systemReason(error)}`);
      }
    }
  }

  #lose(worker: WarmWorker, reason: string): void {
    if (!this.#waiting.has(worker)) return;
    this.#dismiss(worker);
    if (worker.warm) this.#retry = FIRST_RETRY_MS;
    this.#tryLater(`ended: ${reason}`);
  }

  /** What fails again and again must not keep the machine busy. */
  #tryLater(what: string): void {
    this.#options.logger.warn({ gpu: this.#gpu.uuid }, `a worker that was to wait for a program ${what}`);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#fill();
    }, this.#retry).unref();
    this.#retry = Math.min(LONGEST_RETRY_MS, this.#retry * 2);
  }
}

export class WarmWorker {
  readonly identity: { readonly pid: number; readonly startTime: string };
  /** Its context is ready. */
  warm = false;
  readonly #process: ChildProcess;
  readonly #addon: Addon;
  readonly #control: number;
  #mine = true;
  #words = '';

  constructor(gpu: GpuRecord, { executable, driver, addon, launcher }: WarmWorkersOptions, ended: (reason: string) => void) {
    const [file, args] = launcher.command(executable, ['--warm', '--driver', driver, '--gpu', gpu.uuid]);
    const [control, theirs] = addon.socketPair();
    this.#addon = addon;
    this.#control = control;
    try {
      this.#process = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe', theirs, 'pipe'], detached: true });
    } catch (error) {
      this.#letGo();
      throw error;
    } finally {
      closeSync(theirs);
    }
    const pid = this.#process.pid ?? 0;
    this.identity = { pid, startTime: identifyProcess(pid).startTime ?? '' };
    // What it says is heard until it is assigned: then it gets other files, and these end.
    readLines(this.#process.stdio[4] as Readable | null, (line) => {
      const report = parseReport(line);
      if (report?.event === 'refused') this.#words = report.sentence;
      this.warm ||= line.includes('"warm"');
    });
    readLines(this.#process.stderr, (line) => {
      this.#words = line;
    });
    this.#process.once('error', (error) => ended(error.message));
    // Not at its exit: its last words may still have to be read.
    this.#process.once('close', (status, signal) => ended(this.#words || `${signal ?? `status ${status}`}`));
  }

  /** Becomes the worker of this connection, which is closed here as the files are. @throws when it is gone; the connection is left then. */
  assign(options: WorkerOptions, connection: Socket, files: WorkerFiles, listener: WorkerListener): Worker {
    makeBlocking(connection);
    const words = Buffer.from(workerArguments(options).join('\0'));
    try {
      this.#addon.sendDescriptors(this.#control, words, [descriptorOf(connection), files.report, files.log]);
    } finally {
      for (const fd of [files.report, files.log]) closeSync(fd);
      this.#letGo();
    }
    connection.destroy();
    return new ChildWorker(this.#process, listener, 'warm');
  }

  /** The end of its control socket is its own, unless it has become somebody's worker. */
  dismiss(): void {
    this.#letGo();
    this.#process.unref();
  }

  /** At once, whatever it does; it is dismissed beside that. */
  kill(): void {
    abandon(this.#process);
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
