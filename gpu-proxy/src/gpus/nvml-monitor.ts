import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { RetryTimer } from '@nvidia-virtual/service/backoff';
import { systemReason } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import type { Installation } from '../host/installation.js';
import type { Launcher } from '../host/launcher.js';
import { killWithoutWaiting } from '../host/run-command.js';
import type { Backend } from './backend.js';

/** Use of one GPU by one process, as NVML reports. */
interface ProcessUse {
  /** Bytes. */
  readonly memory: number;
  /** Microseconds in which its kernels ran since the previous reading. */
  readonly busy: number;
}

/** Keyed by pid, then by the UUID of the GPU. */
export type NvmlReading = ReadonlyMap<number, ReadonlyMap<string, ProcessUse>>;

interface NvmlMonitorOptions<Reading> {
  readonly installation: Installation;
  readonly backend: Backend;
  readonly launcher: Launcher;
  readonly logger: Logger;
  /** Arguments of the worker: the kind of reading, and the interval. */
  readonly words: readonly string[];
  /** The consequence while NVML cannot be read: the start of a log line. */
  readonly consequence: string;
  /** @throws if the line is malformed */
  parse(line: string): Reading;
  /** Called with each new reading. */
  reading(reading: Reading): void;
  /** NVML is missing or does not answer. Called at each attempt. */
  failed?(): void;
  /** Timeout for the driver. */
  readonly patienceMs?: number;
}

const PATIENCE_MS = 10_000;
const BACKOFF = { first: 1000, longest: 60_000 };

/**
 * Reads from NVML in a separate process: gpu-proxy never loads a part of the driver. The process
 * runs only while it is wanted, because an open NVML blocks a driver update.
 */
export class NvmlMonitor<Reading> {
  readonly #options: NvmlMonitorOptions<Reading>;
  readonly #library: string | undefined;
  #process: ChildProcess | undefined;
  /** The process that #stop() killed. */
  #dismissed: ChildProcess | undefined;
  #wanted = false;
  #latest: { readonly at: number; readonly reading: Reading } | undefined;
  readonly #retry = new RetryTimer(() => this.#start(), BACKOFF);
  #silence: NodeJS.Timeout | undefined;
  /** True if the current failure was logged. */
  #told = false;

  constructor(options: NvmlMonitorOptions<Reading>) {
    this.#options = options;
    this.#library = libraryOf(options.backend);
  }

  get wanted(): boolean {
    return this.#wanted;
  }

  set wanted(wanted: boolean) {
    if (wanted === this.#wanted) return;
    this.#wanted = wanted;
    if (wanted) this.#start();
    else this.#stop();
  }

  /** The latest reading; undefined if it is older than the timeout. */
  get latest(): Reading | undefined {
    const { patienceMs = PATIENCE_MS } = this.#options;
    return this.#latest && Date.now() - this.#latest.at <= patienceMs
      ? this.#latest.reading
      : undefined;
  }

  #start(): void {
    const { launcher, installation } = this.#options;
    // A killed process that still exists hangs in the driver. A new one would hang, too.
    if (this.#process || this.#retry.pending) return;
    if (this.#library === undefined || !existsSync(launcher.seen(this.#library))) {
      this.#options.failed?.();
      if (this.#library !== undefined) this.#retry.schedule();
      return;
    }
    const { simulatedState } = this.#options.backend;
    const words = ['--processes', this.#library, ...this.#options.words];
    if (simulatedState !== undefined) words.push('--simulated-state', simulatedState);
    const [file, args] = launcher.command(installation.worker, words, 'query');
    try {
      this.#attend(spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true }));
    } catch (error) {
      this.#tell(systemReason(error));
      this.#retry.schedule();
    }
  }

  #attend(child: ChildProcess): void {
    this.#process = child;
    let said = '';
    createInterface({ input: child.stdout as Readable }).on('line', (line) =>
      this.#take(child, line),
    );
    createInterface({ input: child.stderr as Readable }).on('line', (line) => {
      said = line;
    });
    child.once('error', (error) => this.#lose(child, systemReason(error)));
    child.once('close', (status, signal) =>
      this.#lose(child, said || `it ended with ${signal ?? `status ${status}`}`),
    );
    child.unref();
    for (const stream of [child.stdout, child.stderr] as unknown as Socket[]) stream.unref();
    this.#awaitLine(child);
  }

  #stop(): void {
    this.#retry.cancel();
    clearTimeout(this.#silence);
    this.#latest = undefined;
    this.#dismissed = this.#process;
    this.#process?.kill('SIGKILL');
  }

  #awaitLine(child: ChildProcess): void {
    const { patienceMs = PATIENCE_MS } = this.#options;
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => {
      this.#tell(`the driver does not answer for ${patienceMs / 1000} s`);
      killWithoutWaiting(child);
    }, patienceMs).unref();
  }

  #take(child: ChildProcess, line: string): void {
    if (child !== this.#process || !this.#wanted) return;
    try {
      const reading = this.#options.parse(line);
      this.#awaitLine(child);
      this.#retry.reset();
      this.#told = false;
      this.#latest = { at: Date.now(), reading };
      this.#options.reading(reading);
    } catch (error) {
      this.#tell((error as Error).message);
    }
  }

  #lose(child: ChildProcess, reason: string): void {
    if (child !== this.#process) return;
    this.#process = undefined;
    clearTimeout(this.#silence);
    if (!this.#wanted) return;
    if (child === this.#dismissed) {
      this.#start();
      return;
    }
    this.#tell(reason);
    this.#retry.schedule();
  }

  /** Logs the first failure of a series. */
  #tell(reason: string): void {
    if (!this.#told) this.#options.logger.warn(`${this.#options.consequence}: ${reason}`);
    this.#told = true;
    this.#options.failed?.();
  }
}

/** Path of the NVML library. Undefined if simulated GPUs are private to each process. */
function libraryOf({ kind, driver, simulatedState }: Backend): string | undefined {
  if (kind === 'real') return path.join(path.dirname(driver), 'libnvidia-ml.so.1');
  return simulatedState === undefined
    ? undefined
    : path.join(path.dirname(driver), 'libsimulator-nvml.so.1');
}

/** Parses a line of `nvidia-virtual-worker --processes`. @throws if it is malformed */
export function parseReading(line: string): NvmlReading {
  const { gpus } = JSON.parse(line) as {
    gpus: { uuid: string; processes: (ProcessUse & { pid: number })[] }[];
  };
  const processes = new Map<number, Map<string, ProcessUse>>();
  for (const { uuid, processes: list } of gpus)
    for (const { pid, memory, busy } of list)
      processes.set(
        pid,
        (processes.get(pid) ?? new Map<string, ProcessUse>()).set(uuid, { memory, busy }),
      );
  return processes;
}
