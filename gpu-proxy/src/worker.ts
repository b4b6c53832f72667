import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { makeBlocking } from './addon.js';
import type { WorkerExit } from './session.js';

export interface WorkerOptions {
  readonly executable: string;
  readonly driver: string;
  /** Bytes; 0: none. */
  readonly memoryLimit: number;
  readonly quotaPath: string;
  readonly slot: number;
  /** Indices or UUIDs; empty: all. */
  readonly gpus: readonly string[];
}

export interface WorkerListener {
  /** A line of the report pipe. */
  report(line: string): void;
  /** A line of the worker's own log. */
  log(line: string): void;
  /** The worker never ran. */
  failed(error: Error): void;
  /** It ran, is gone, and everything it said was heard. */
  exited(exit: WorkerExit): void;
}

/** By contract with native/worker: descriptor 3 is the connection, 4 the report pipe. */
const REPORT_FD = 4;

/** One native process that executes the calls of one client process. It ends by itself when the client is gone. */
export class Worker {
  readonly #process: ChildProcess;

  /** Hands `connection` over: it must never have been read, and is closed here. */
  constructor(options: WorkerOptions, connection: Socket, listener: WorkerListener) {
    makeBlocking(connection);
    const stdio = ['ignore', 'ignore', 'pipe', connection, 'pipe'] as const;
    // A session of its own, so that Ctrl-C at the terminal reaches the program and not the worker that still serves it.
    this.#process = spawn(options.executable, workerArguments(options), { stdio: [...stdio], detached: true });
    connection.destroy();
    this.#process.once('error', (error) => listener.failed(error));
    if (this.#process.pid === undefined) return;
    readLines(this.#process.stdio[REPORT_FD] as Readable, (line) => listener.report(line));
    readLines(this.#process.stderr as Readable, (line) => listener.log(line));
    this.#process.once('close', (status, signal) => listener.exited({ status, signal }));
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }
}

function workerArguments(options: WorkerOptions): string[] {
  return [
    ...['--driver', options.driver],
    ...['--memory-limit', String(options.memoryLimit)],
    ...['--quota', options.quotaPath],
    ...['--quota-slot', String(options.slot)],
    ...options.gpus.flatMap((gpu) => ['--gpu', gpu]),
  ];
}

function readLines(stream: Readable, take: (line: string) => void): void {
  stream.on('error', () => stream.destroy());
  createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on('line', take);
}
