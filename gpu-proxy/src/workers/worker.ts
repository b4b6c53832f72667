import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Limits } from '@nvidia-virtual/ledger';
import { isAlive, type ProcessId } from '@nvidia-virtual/service/process-table';
import { type DriverChoice, driverArguments } from '../gpus/backend.js';
import { type Addon, makeBlocking } from '../host/addon.js';
import type { Command } from '../host/launcher.js';
import type { MpsClient } from '../mps/concurrent-gpus.js';

/** Command line options of a worker: native/worker/options.h. */
export interface WorkerOptions extends DriverChoice {
  /** Bytes; 0: no limit. */
  readonly memoryLimit: number;
  readonly quotaPath: string;
  readonly slot: number;
  /** Directory that the workers of the allocation share. */
  readonly sharing: string;
  /** Indices or UUIDs, as its program sees them; empty: all. */
  readonly gpus: readonly string[];
  /** UUID of the GPU on which it starts; undefined: the one that its program sees. */
  readonly place: string | undefined;
  /** UUIDs of the GPUs to which it may move. */
  readonly otherPlaces: readonly string[];
  /** Bytes that the session's first context is charged to the quota. */
  readonly contextCharge: number;
  /** Bytes that each further context is charged. */
  readonly contextMemory: number;
  /** Bytes that a stream is charged. */
  readonly streamMemory: number;
  /** Bytes that the heap of malloc() in kernels is charged, once per context. */
  readonly heapMemory: number;
  /** MPS settings in concurrent mode; undefined: without MPS. */
  readonly mps: MpsClient | undefined;
  /** Socket of the arbiter; undefined: GPU time is not scheduled. */
  readonly arbiter: string | undefined;
  readonly figures: string;
  /** Directory of the driver's cache; undefined: the driver's default. */
  readonly cache: string | undefined;
  /**
   * Directory of all allocations. The worker hides it behind a mount of its cache; undefined: it
   * does not.
   */
  readonly allocations: string | undefined;
  readonly uid: number | undefined;
  /** Programs print a summary of their calls and their GPU work at their end. */
  readonly summary: boolean;
  /** Programs get userfaultfd, so that managed memory moves to the GPU. */
  readonly movesManaged: boolean;
  readonly limits: Limits;
}

export interface WorkerExit {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface WorkerListener {
  /** The worker did not start. */
  failed(error: Error): void;
  /** The worker exited. `exit` is undefined if an earlier gpu-proxy started it. */
  exited(exit: WorkerExit | undefined): void;
}

/**
 * Warm: it had a ready context. Cold: it was started for its session. Found: an earlier gpu-proxy
 * started it.
 */
export type WorkerStart = 'warm' | 'cold' | 'found';

/**
 * A native process that executes the calls of one client process. It exits after the client.
 */
export interface Worker {
  /** 0: it never started. */
  readonly pid: number;
  readonly start: WorkerStart;
  kill(): void;
  /** Detaches this gpu-proxy. The worker continues. */
  leave(): void;
}

/**
 * Starts a worker for `connection`, from which nothing may have been read. Closes the files, and
 * the connection if the start succeeds. By contract with native/worker, descriptor 3 is the
 * connection, 4 the report, 6 the command socket.
 */
export function startWorker(
  command: Command,
  connection: Socket,
  files: WorkerFiles,
  listener: WorkerListener,
): Worker {
  try {
    makeBlocking(connection);
    const first = ['ignore', 'ignore', files.log, connection, files.report] as const;
    const stdio = [...first, 'ignore', files.commands] as const;
    // Detached: Ctrl-C in the terminal does not reach the worker while its program still runs, and
    // the worker outlives gpu-proxy.
    const child = spawn(command[0], command[1], { stdio: [...stdio], detached: true });
    connection.destroy();
    return new ChildWorker(child, listener, 'cold');
  } finally {
    closeFiles(files);
  }
}

/** A worker that this gpu-proxy started. */
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

/** Descriptors for the worker. */
export interface WorkerFiles {
  readonly report: number;
  readonly log: number;
  /** The socket on which it receives commands (worker-commands.ts). */
  readonly commands: number;
}

export function closeFiles({ report, log, commands }: WorkerFiles): void {
  for (const file of [report, log, commands]) closeSync(file);
}

/** A worker that an earlier gpu-proxy started. */
export class FoundWorker implements Worker {
  readonly start = 'found';
  readonly pid: number;
  readonly #identity: ProcessId;
  readonly #unwatch: () => void;

  constructor(addon: Addon, identity: ProcessId, listener: Pick<WorkerListener, 'exited'>) {
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
    ...driverArguments(options),
    ...['--memory-limit', String(options.memoryLimit)],
    ...['--quota', options.quotaPath],
    ...['--quota-slot', String(options.slot)],
    ...['--sharing', options.sharing],
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
    ...given('--allocations', options.allocations),
    ...given('--uid', options.uid),
    '--control',
    ...(options.summary ? ['--summary'] : []),
    ...(options.movesManaged ? ['--moves-managed'] : []),
    ...['--max-threads', String(options.limits.threads)],
    ...['--max-handles', String(options.limits.handles)],
    ...['--max-pinned', String(options.limits.pinnedMemory)],
    ...options.gpus.flatMap((gpu) => ['--gpu', gpu]),
    ...given('--place', options.place),
    ...otherPlaceArguments(options.otherPlaces),
  ];
}

export function otherPlaceArguments(gpus: readonly string[]): string[] {
  return gpus.flatMap((gpu) => ['--other-place', gpu]);
}

function given(option: string, value: string | number | undefined): string[] {
  return value === undefined ? [] : [option, String(value)];
}
