import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Limits } from '@nvidia-virtual/ledger';
import { type Addon, makeBlocking } from './addon.js';
import type { MpsClient } from './concurrent-gpus.js';
import type { Command } from './launcher.js';
import { isAlive, type ProcessIdentity } from './process-table.js';

/** What one worker is told: native/worker/options.h. */
export interface WorkerOptions {
  readonly driver: string;
  /** Bytes; 0: none. */
  readonly memoryLimit: number;
  readonly quotaPath: string;
  readonly slot: number;
  /** Indices or UUIDs; empty: all. */
  readonly gpus: readonly string[];
  /** Bytes that the session's first context costs the quota. */
  readonly contextCharge: number;
  /** Bytes that each further one costs. */
  readonly contextMemory: number;
  /** Bytes that a stream costs. */
  readonly streamMemory: number;
  /** Bytes that the heap of kernels’ malloc costs, once in a context. */
  readonly heapMemory: number;
  /** How it uses a GPU in concurrent mode; undefined: without MPS. */
  readonly mps: MpsClient | undefined;
  /** The arbiter's socket; undefined: it takes GPU time as it comes. */
  readonly arbiter: string | undefined;
  readonly figures: string;
  /** Directory of the driver's cache; undefined: where the driver has it. */
  readonly cache: string | undefined;
  readonly uid: number | undefined;
  readonly limits: Limits;
}

export interface WorkerExit {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface WorkerListener {
  /** The worker never ran. */
  failed(error: Error): void;
  /** It is gone; undefined when nobody saw how, because an earlier proxy had started it. */
  exited(exit: WorkerExit | undefined): void;
}

/** It waited with a context ready, was started for its session, or was found when this proxy started. */
export type WorkerStart = 'warm' | 'cold' | 'found';

/** One native process that executes the calls of one client process. It ends by itself when the client is gone. */
export interface Worker {
  /** 0: it never ran. */
  readonly pid: number;
  readonly start: WorkerStart;
  kill(): void;
  /** It goes on without this proxy. */
  leave(): void;
}

/**
 * Starts a worker for `connection`, which must never have been read; it and the files are closed here, the files also when none can be
 * started. By contract with native/worker, descriptor 3 is the connection, 4 the report.
 */
export function startWorker(command: Command, connection: Socket, files: WorkerFiles, listener: WorkerListener): Worker {
  try {
    makeBlocking(connection);
    const stdio = ['ignore', 'ignore', files.log, connection, files.report] as const;
    // A session of its own: Ctrl-C at the terminal reaches the program and not the worker that still serves it, and it outlives this proxy.
    const child = spawn(command[0], command[1], { stdio: [...stdio], detached: true });
    connection.destroy();
    return new ChildWorker(child, listener, 'cold');
  } finally {
    closeSync(files.log);
    closeSync(files.report);
  }
}

/** A worker that this proxy started. */
export class ChildWorker implements Worker {
  readonly #process: ChildProcess;

  constructor(
    child: ChildProcess,
    listener: WorkerListener,
    readonly start: WorkerStart,
  ) {
    this.#process = child;
    child.once('error', (error) => listener.failed(error));
    child.once('exit', (status, signal) => listener.exited({ status, signal }));
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }

  leave(): void {
    this.#process.removeAllListeners('exit').unref();
  }
}

/** Descriptors. */
export interface WorkerFiles {
  readonly report: number;
  readonly log: number;
}

/** A worker that an earlier proxy started. */
export class FoundWorker implements Worker {
  readonly start = 'found';
  readonly pid: number;
  readonly #identity: ProcessIdentity;
  readonly #unwatch: () => void;

  constructor(addon: Addon, identity: ProcessIdentity, listener: Pick<WorkerListener, 'exited'>) {
    this.pid = identity.pid;
    this.#identity = identity;
    this.#unwatch = addon.watchProcess(identity, () => listener.exited(undefined));
  }

  kill(): void {
    if (isAlive(this.#identity)) process.kill(this.pid, 'SIGKILL');
  }

  leave(): void {
    this.#unwatch();
  }
}

export function workerArguments(options: WorkerOptions): string[] {
  return [
    ...['--driver', options.driver],
    ...['--memory-limit', String(options.memoryLimit)],
    ...['--quota', options.quotaPath],
    ...['--quota-slot', String(options.slot)],
    ...['--context-charge', String(options.contextCharge)],
    ...['--context-memory', String(options.contextMemory)],
    ...['--stream-memory', String(options.streamMemory)],
    ...['--heap-memory', String(options.heapMemory)],
    ...given('--mps-pipes', options.mps?.pipes),
    ...given('--mps-threads', options.mps?.threads),
    ...given('--mps-memory', options.mps?.memory),
    ...given('--arbiter', options.arbiter),
    ...['--figures', options.figures],
    ...given('--cache', options.cache),
    ...given('--uid', options.uid),
    ...['--max-threads', String(options.limits.threads)],
    ...['--max-handles', String(options.limits.handles)],
    ...['--max-pinned', String(options.limits.pinnedMemory)],
    ...options.gpus.flatMap((gpu) => ['--gpu', gpu]),
  ];
}

function given(option: string, value: string | number | undefined): string[] {
  return value === undefined ? [] : [option, String(value)];
}
