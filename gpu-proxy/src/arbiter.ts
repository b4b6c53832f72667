import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { AllocationSpecification, TimeUse } from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import { systemReason } from './errors.js';
import { readIfThere } from './files.js';
import type { Command } from './launcher.js';

/** All that the arbiter must know; it drops what is not in it. */
export interface ArbiterTable {
  readonly allocations: readonly AllocationSpecification[];
  readonly workers: readonly { readonly pid: number; readonly allocation: string }[];
}

export interface ArbiterOptions {
  /** What starts it with these arguments. */
  command(args: readonly string[]): Command;
  readonly socket: string;
  readonly logger: Logger;
  /** Microseconds that one allocation has the GPU when others wait. */
  readonly window: number;
  /** One that was there is gone, and another is started. */
  restarted?(): void;
  /** What holds now, for an arbiter that was just reached. */
  table(): ArbiterTable;
}

const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 5000;
/** An arbiter that was reached and lived so long may be started again at once. */
const HEALTHY_MS = 10_000;
const ANSWER_MS = 1000;
const NONE: TimeUse = { granted: 0, waited: 0, overrun: 0, windows: 0 };

/**
 * Keeps an arbiter running and told. It is a process of its own that outlives this one: one that answers on the socket is taken as it is. While
 * there is none, work goes on ungated.
 */
export class Arbiter {
  readonly #options: ArbiterOptions;
  readonly #times = new Map<string, CountedTime>();
  #connection: Socket | undefined;
  /** When it was, in milliseconds; 0: it is not. */
  #reached = 0;
  #process: ChildProcess | undefined;
  #retry = FIRST_RETRY_MS;
  #timer: NodeJS.Timeout | undefined;
  #waiting: (() => void)[] = [];
  #window: number;
  /** There was one before. */
  #known = false;
  #ended = false;

  constructor(options: ArbiterOptions) {
    this.#options = options;
    this.#window = options.window;
    this.#connect();
  }

  /** As of the latest refresh(). */
  timeOf(id: string): TimeUse {
    return this.#times.get(id)?.total ?? NONE;
  }

  /** Whether it told of this allocation since it was last put, or the arbiter last reached. */
  knows(id: string): boolean {
    return this.#times.has(id);
  }

  /** It answers. */
  get connected(): boolean {
    return this.#reached > 0;
  }

  set window(microseconds: number) {
    if (microseconds === this.#window) return;
    this.#window = microseconds;
    this.#sayWindow();
  }

  put(specification: AllocationSpecification): void {
    this.#say(allocationLine(specification));
  }

  remove(id: string): void {
    this.#times.delete(id);
    this.#say(`remove ${id}`);
  }

  addWorker(pid: number, id: string): void {
    if (pid > 0) this.#say(workerLine(pid, id));
  }

  removeWorker(pid: number): void {
    this.#say(`gone ${pid}`);
  }

  /** Asks for the figures. Resolves also when there is no answer: then the old ones stay. */
  refresh(): Promise<void> {
    if (this.#reached === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const patience = setTimeout(resolve, ANSWER_MS).unref();
      this.#waiting.push(() => {
        clearTimeout(patience);
        resolve();
      });
      this.#say('figures');
    });
  }

  /** It goes on, for the workers that are left and for the next proxy. */
  leave(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#connection?.destroy();
    this.#process?.unref();
    this.#noteAnswered();
  }

  /** Ends the one that was started here. */
  async end(): Promise<void> {
    this.leave();
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    await new Promise((resolve) => {
      child.once('exit', resolve);
      child.kill('SIGTERM');
    });
  }

  #connect(): void {
    const connection = createConnection(this.#options.socket);
    this.#connection = connection;
    connection.once('connect', () => {
      this.#reached = Date.now();
      this.#known = true;
      this.#sayAll();
    });
    createInterface({ input: connection, crlfDelay: Number.POSITIVE_INFINITY })
      .on('line', (line) => this.#hear(line))
      .on('error', () => {});
    connection.on('error', () => connection.destroy());
    connection.once('close', () => this.#lose());
  }

  #lose(): void {
    if (this.#ended) return;
    const reached = this.#reached;
    this.#reached = 0;
    this.#noteAnswered();
    if (reached > 0) this.#options.logger.warn('the arbiter of GPU time went away: work goes on, ungated until it is back');
    if (reached > 0 && Date.now() - reached > HEALTHY_MS) this.#retry = FIRST_RETRY_MS;
    if (!this.#process) this.#start();
    this.#timer = setTimeout(() => this.#connect(), this.#retry);
    this.#retry = Math.min(LONGEST_RETRY_MS, this.#retry * 2);
  }

  #start(): void {
    const { socket } = this.#options;
    if (this.#known) this.#options.restarted?.();
    this.#known = true;
    try {
      this.#process = this.#spawn(`${socket}.log`, this.#options.command(['--socket', socket]));
    } catch (error) {
      this.#noteEnd(systemReason(error));
    }
  }

  #spawn(log: string, [file, args]: Command): ChildProcess {
    const fd = openSync(log, 'w', 0o600);
    try {
      const child = spawn(file, args, { stdio: ['ignore', 'ignore', fd], detached: true });
      child.once('error', (error) => this.#noteEnd(error.message));
      child.once('exit', (status, signal) => this.#noteEnd(readIfThere(log)?.trim() || `it ended with ${signal ?? `status ${status}`}`));
      return child;
    } finally {
      closeSync(fd);
    }
  }

  #noteEnd(reason: string): void {
    this.#process = undefined;
    if (!this.#ended) this.#options.logger.error(`The arbiter of GPU time ended: ${reason}. It is started again.`);
  }

  #sayAll(): void {
    const { allocations, workers } = this.#options.table();
    this.#say('control 1');
    this.#sayWindow();
    this.#say('begin');
    for (const specification of allocations) this.#say(allocationLine(specification));
    for (const { pid, allocation } of workers) this.#say(workerLine(pid, allocation));
    this.#say('commit');
  }

  /** Also to one that an earlier proxy started with another. */
  #sayWindow(): void {
    this.#say(`window ${this.#window}`);
  }

  /** What is lost here is in the table that the next connection begins with. */
  #say(line: string): void {
    if (this.#reached > 0) this.#connection?.write(`${line}\n`);
  }

  #hear(line: string): void {
    const [word, id = '', ...numbers] = line.split(' ');
    if (word === 'figures') this.#count(id, numbers);
    if (word === 'end') this.#waiting.shift()?.();
    if (word === 'error') this.#options.logger.error(`The arbiter of GPU time refused a line: ${line.slice('error '.length)}.`);
  }

  #count(id: string, numbers: readonly string[]): void {
    const [granted = Number.NaN, waited = Number.NaN, overrun = Number.NaN, windows = Number.NaN] = numbers.map(Number);
    if (Number.isNaN(granted + waited + overrun + windows)) return;
    const time = this.#times.get(id) ?? new CountedTime();
    this.#times.set(id, time);
    time.count({ granted, waited, overrun, windows });
  }

  #noteAnswered(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** An arbiter that is started again counts from 0 again; what its predecessor counted stays. */
class CountedTime {
  #before = NONE;
  #now = NONE;

  count(now: TimeUse): void {
    if (now.granted < this.#now.granted || now.windows < this.#now.windows) this.#before = this.total;
    this.#now = now;
  }

  get total(): TimeUse {
    const [before, now] = [this.#before, this.#now];
    return {
      granted: before.granted + now.granted,
      waited: before.waited + now.waited,
      overrun: before.overrun + now.overrun,
      windows: before.windows + now.windows,
    };
  }
}

/** Whoever names no GPU has them all, alone. */
function allocationLine({ id, share, policy, priority, gpus }: AllocationSpecification): string {
  return `allocation ${id} ${share} ${policy} ${priority} ${gpus.join(',') || 'all'}`;
}

function workerLine(pid: number, id: string): string {
  return `worker ${pid} ${id}`;
}
