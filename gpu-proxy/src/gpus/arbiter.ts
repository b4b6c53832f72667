import type { ChildProcess } from 'node:child_process';
import { createConnection, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { AllocationSpecification, TimeUse } from '@nvidia-virtual/ledger';
import { systemReason } from '@nvidia-virtual/service/errors';
import { Supervisor } from '@nvidia-virtual/service/supervisor';
import type { Logger } from 'pino';
import type { Addon } from '../host/addon.js';
import type { Command } from '../host/launcher.js';

/** The complete state of the arbiter. The arbiter drops everything else. */
export interface ArbiterTable {
  readonly allocations: readonly AllocationSpecification[];
  readonly workers: readonly { readonly pid: number; readonly allocation: string }[];
}

interface ArbiterOptions {
  /** Returns the command that starts it with these arguments. */
  command(args: readonly string[]): Command;
  readonly socket: string;
  readonly addon: Pick<Addon, 'peerCredentials'>;
  readonly logger: Logger;
  /** Length of a window in microseconds while several allocations compete. */
  readonly window: number;
  /**
   * Microseconds that work may overrun its window while others wait. Then its session is killed; 0:
   * no limit.
   */
  readonly overrunLimit: number;
  /** Percent of its share that an allocation keeps beside higher priorities. */
  readonly guaranteedShare: number;
  /** Called when a lost arbiter is restarted. */
  restarted?(): void;
  /** Returns the current state, sent after each connect. */
  table(): ArbiterTable;
}

const ANSWER_MS = 1000;
const HEARTBEAT_MS = 1000;
/** An arbiter that misses this many heartbeats hangs, even if its socket is open. */
const MOST_MISSED = 5;
const NONE: TimeUse = { granted: 0, waited: 0, overrun: 0, windows: 0 };

/**
 * Supervises the arbiter and sends it allocations and workers. The arbiter is a process that
 * outlives gpu-proxy: a running one is reused, and one that hangs is killed. While there is none,
 * workers with a fixed share limit themselves, others continue, and new sessions wait.
 */
export class Arbiter {
  readonly #options: ArbiterOptions;
  readonly #times = new Map<string, CountedTime>();
  /** Allocations of the answer that is being read. */
  readonly #answered = new Set<string>();
  #connection: Socket | undefined;
  /** Time of the connect in milliseconds; 0: not connected. */
  #reached = 0;
  #process: ChildProcess | undefined;
  readonly #supervisor = new Supervisor(() => this.#connect());
  #waiting: (() => void)[] = [];
  #window: number;
  #overrunLimit: number;
  #guaranteedShare: number;
  #heartbeat: NodeJS.Timeout | undefined;
  /** Heartbeats since the last answer. */
  #missed = 0;
  /** True after the first connect or start. */
  #known = false;
  #ended = false;

  constructor(options: ArbiterOptions) {
    this.#options = options;
    this.#window = options.window;
    this.#overrunLimit = options.overrunLimit;
    this.#guaranteedShare = options.guaranteedShare;
    this.#connect();
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_MS).unref();
  }

  /** GPU time of an allocation, as of the latest refresh(). */
  timeOf(id: string): TimeUse {
    return this.#times.get(id)?.total ?? NONE;
  }

  /** Whether the arbiter ever reported figures of this allocation. */
  knows(id: string): boolean {
    return this.#times.has(id);
  }

  get connected(): boolean {
    return this.#reached > 0;
  }

  set window(microseconds: number) {
    if (microseconds === this.#window) return;
    this.#window = microseconds;
    this.#sayWindow();
  }

  set overrunLimit(microseconds: number) {
    if (microseconds === this.#overrunLimit) return;
    this.#overrunLimit = microseconds;
    this.#sayOverrunLimit();
  }

  set guaranteedShare(percent: number) {
    if (percent === this.#guaranteedShare) return;
    this.#guaranteedShare = percent;
    this.#sayGuarantee();
  }

  put(specification: AllocationSpecification): void {
    this.#sayAllocation(specification);
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

  /** Requests new figures. Without an answer it also resolves, and the old figures stay. */
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

  /** Detaches this gpu-proxy. The arbiter continues for its workers and the next gpu-proxy. */
  leave(): void {
    this.#ended = true;
    this.#supervisor.stop();
    clearInterval(this.#heartbeat);
    this.#connection?.destroy();
    this.#process?.unref();
    this.#noteAnswered();
  }

  /** Terminates the arbiter if this gpu-proxy started it. */
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
      this.#missed = 0;
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
    if (reached > 0)
      this.#options.logger.warn(
        'the connection to the arbiter of GPU time is lost: ' +
          'until it is back, workers enforce fixed shares, other allocations run without ' +
          'turns, and new sessions wait',
      );
    if (!this.#process) this.#start();
    this.#supervisor.restart(reached > 0 ? reached : undefined);
  }

  /**
   * Watchdog: kills an arbiter that hangs with an open socket, because workers wait at their gates.
   */
  #beat(): void {
    if (this.#reached === 0) return;
    if (this.#missed >= MOST_MISSED) {
      this.#kill();
      return;
    }
    this.#missed++;
    void this.refresh();
  }

  /**
   * Ends an arbiter of a version that knows no guarantee: it leaves lower priorities nothing. The
   * end of the connection starts the next one, which is no failure.
   */
  #replaceFormer(): void {
    const pid = this.#findPid();
    this.#options.logger.info(
      { pid },
      'The arbiter of GPU time is of a former version. It is replaced by one of this version.',
    );
    this.#known = false;
    if (pid !== undefined) process.kill(pid, 'SIGTERM');
  }

  #kill(): void {
    const pid = this.#findPid();
    this.#options.logger.error(
      { pid },
      `The arbiter of GPU time has not answered for ${MOST_MISSED} s. ` +
        'It is killed and started again.',
    );
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
    this.#connection?.destroy();
  }

  /**
   * The kernel knows which process listens. A program could have the arbiter's command line.
   * Undefined without a connection, and if that process is outside of this PID namespace.
   */
  #findPid(): number | undefined {
    if (!this.#connection || this.#connection.destroyed) return undefined;
    return this.#options.addon.peerCredentials(this.#connection).pid || undefined;
  }

  #start(): void {
    const { socket } = this.#options;
    if (this.#known) this.#options.restarted?.();
    this.#known = true;
    try {
      const command = this.#options.command(['--socket', socket]);
      this.#process = this.#supervisor.spawn(command, `${socket}.log`, (reason) =>
        this.#noteEnd(reason),
      );
    } catch (error) {
      this.#noteEnd(systemReason(error));
    }
  }

  #noteEnd(reason: string): void {
    this.#process = undefined;
    if (!this.#ended)
      this.#options.logger.error(`The arbiter of GPU time ended: ${reason}. It is started again.`);
  }

  #sayAll(): void {
    const { allocations, workers } = this.#options.table();
    this.#say('control 1');
    this.#sayWindow();
    this.#sayOverrunLimit();
    this.#sayGuarantee();
    this.#say('begin');
    for (const specification of allocations) this.#sayAllocation(specification);
    for (const { pid, allocation } of workers) this.#say(workerLine(pid, allocation));
    this.#say('commit');
  }

  /** An arbiter of a former version refuses the second line only. */
  #sayAllocation(specification: AllocationSpecification): void {
    this.#say(allocationLine(specification));
    if (specification.latency === 'low') this.#say(`latency ${specification.id} low`);
  }

  /** Sent after each connect: an earlier gpu-proxy may have set another window. */
  #sayWindow(): void {
    this.#say(`window ${this.#window}`);
  }

  #sayOverrunLimit(): void {
    this.#say(`overrun ${Math.ceil(this.#overrunLimit / 1_000_000)}`);
  }

  #sayGuarantee(): void {
    this.#say(`guarantee ${this.#guaranteedShare}`);
  }

  /** A lost line is no problem: each connection begins with the complete table. */
  #say(line: string): void {
    if (this.#reached > 0) this.#connection?.write(`${line}\n`);
  }

  #hear(line: string): void {
    const [word, id = '', ...numbers] = line.split(' ');
    if (word === 'figures') this.#count(id, numbers);
    if (word === 'end') {
      this.#missed = 0;
      this.#forgetUnanswered();
      this.#waiting.shift()?.();
    }
    if (line.startsWith('error "guarantee" is not a command')) this.#replaceFormer();
    else if (word === 'error')
      this.#options.logger.error(
        `The arbiter of GPU time refused a line: ${line.slice('error '.length)}.`,
      );
  }

  #count(id: string, numbers: readonly string[]): void {
    const [granted = Number.NaN, waited = Number.NaN, overrun = Number.NaN, windows = Number.NaN] =
      numbers.map(Number);
    if (Number.isNaN(granted + waited + overrun + windows)) return;
    const time = this.#times.get(id) ?? new CountedTime();
    this.#times.set(id, time);
    this.#answered.add(id);
    time.count({ granted, waited, overrun, windows });
  }

  /** An answer that was on its way while an allocation was removed still had its figures. */
  #forgetUnanswered(): void {
    for (const id of this.#times.keys()) if (!this.#answered.has(id)) this.#times.delete(id);
    this.#answered.clear();
  }

  #noteAnswered(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** Keeps totals across restarts of the arbiter, which counts from 0 again. */
class CountedTime {
  #before = NONE;
  #now = NONE;

  count(now: TimeUse): void {
    if (now.granted < this.#now.granted || now.windows < this.#now.windows)
      this.#before = this.total;
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

/** An allocation without GPUs has all of them. */
function allocationLine({ id, share, policy, priority, gpus }: AllocationSpecification): string {
  return `allocation ${id} ${share} ${policy} ${priority} ${gpus.join(',') || 'all'}`;
}

function workerLine(pid: number, id: string): string {
  return `worker ${pid} ${id}`;
}
