import type { ProcessRecord, SessionRecord, SessionUse } from '@nvidia-virtual/ledger';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import { identifyProcess, isAlive } from '@nvidia-virtual/service/process-table';
import type { Logger } from 'pino';
import type { SlotUse } from '../allocations/quota.js';
import type { Arenas } from '../arenas/arenas.js';
import { SessionArena } from '../arenas/session-arena.js';
import type { Backend } from '../gpus/backend.js';
import type { Addon } from '../host/addon.js';
import {
  FoundWorker,
  type Worker,
  type WorkerExit,
  type WorkerListener,
  type WorkerStart,
} from '../workers/worker.js';
import {
  sendWorkerCommand,
  tellWorker,
  type WorkerAnswer,
  type WorkerCommand,
} from '../workers/worker-commands.js';
import type { WorkerLog } from '../workers/worker-log.js';
import { type Figures, NO_FIGURES, readFigures } from './figures.js';
import { parseReport, type Report, Session } from './session.js';
import { REPORT_BYTES, type SessionFiles } from './session-files.js';

interface LiveSessionOptions {
  readonly record: SessionRecord;
  readonly files: SessionFiles;
  readonly addon: Addon;
  readonly backend: Backend;
  readonly logger: Logger;
  /** Shared by all sessions of the allocation. */
  readonly workerLog: Pick<WorkerLog, 'add'>;
  readonly arenas: Pick<Arenas, 'add' | 'remove' | 'end' | 'whenFreed'>;
  /** Whether its memory is on the GPU, and stays there. */
  resident(): boolean;
  /** The slot of the quota file. */
  memory(): Pick<SlotUse, 'used' | 'peak'>;
  /** Called after the client's hello. */
  introduced(session: Session): void;
  /** Reports an error to the user, unless an earlier gpu-proxy reported it. */
  trouble(error: ProxyError): void;
  ended(): void;
}

/**
 * A worker exits after its client. If it is still alive after this time, it is stuck and is killed.
 */
const ORPHAN_GRACE_MS = 10_000;
/** Timeout for a client's hello. */
const SILENCE_MS = 60_000;

/** A session with a live worker. Reads its reports, watches client and worker, and cleans up. */
export class LiveSession {
  readonly session: Session;
  /** Receives its GPU memory while it is suspended. */
  readonly arena: SessionArena;
  readonly #options: LiveSessionOptions;
  #worker: Worker;
  #unwatchClient = () => {};
  readonly #silence: NodeJS.Timeout;
  #orphan: NodeJS.Timeout | undefined;
  /**
   * When the end of the client was noticed or gpu-proxy killed the session, whichever came first.
   * In milliseconds, as in Date.now().
   */
  #endBegun: number | undefined;
  #over = false;
  /** A malformed report was logged. Only the first is. */
  #noReport = false;
  #figures = NO_FIGURES;
  #figuresLost = false;

  /**
   * @param worker starts or finds the worker. It must return before it calls the listener.
   */
  constructor(options: LiveSessionOptions, worker: (listener: WorkerListener) => Worker) {
    this.#options = options;
    this.#worker = worker({
      failed: (error) => {
        const { pid } = options.record.client;
        options.logger.error(
          new ProxyError('WORKER_NOT_STARTED', { pid, reason: systemReason(error) }).message,
        );
        this.#end({ status: null, signal: null });
      },
      exited: (exit) => this.#end(exit),
    });
    this.session = new Session(this.#wholeRecord(), options.backend, options.logger);
    this.arena = new SessionArena({
      ...{ arenas: options.arenas, file: options.files.arena, idle: () => options.resident() },
      allocation: options.record.allocation,
      send: (command, timeoutMs, file) => this.command(command, timeoutMs, file),
    });
    // Set before the first read of the report, which may clear it.
    this.#silence = setTimeout(() => this.#endSilent(), SILENCE_MS).unref();
    try {
      this.#attend();
    } catch (error) {
      if (this.#worker.start === 'found') {
        // Stop the timers: they must not kill a session that the next gpu-proxy can take over.
        this.leave();
        throw error;
      }
      this.#giveUp(error as Error);
    }
  }

  get workerPid(): number {
    return this.#worker.pid;
  }

  get workerStart(): WorkerStart {
    return this.#worker.start;
  }

  get use(): SessionUse {
    const { used, peak } = this.#options.memory();
    const { contexts, launches, bytesCopied, faults } = this.figures;
    return { memory: used, peakMemory: peak, contexts, launches, bytesCopied, faults };
  }

  /**
   * The worker's counters. If the file cannot be read, the last known values: counters must not
   * decrease.
   */
  get figures(): Figures {
    try {
      this.#figures = readFigures(this.#options.files.figures);
    } catch (error) {
      if (!this.#figuresLost)
        this.session.logger.error(
          `The figures of the session can no longer be read: ${systemReason(error)}.`,
        );
      this.#figuresLost = true;
    }
    return this.#figures;
  }

  /** Kills the worker. The client's next CUDA call fails. */
  kill(): void {
    this.#endBegun ??= Date.now();
    this.session.killed = true;
    this.#worker.kill();
  }

  /** Socket on which its worker receives commands. */
  get commandSocket(): string {
    return this.#options.files.commands;
  }

  /** Socket on which the keeper of its files receives commands. */
  get keeperSocket(): string {
    return this.#options.files.keeper;
  }

  saveRecord(record: SessionRecord): void {
    this.#options.files.writeRecord(record);
    this.session.record = record;
  }

  /** Another process is its worker now: its end is the end of the session. */
  exchangeWorker(worker: SessionRecord['worker']): void {
    this.#worker.leave();
    this.saveRecord({ ...this.session.record, worker });
    this.#worker = new FoundWorker(this.#options.addon, worker, {
      exited: (exit) => this.#end(exit),
    });
  }

  /** Whether it has ended. */
  get over(): boolean {
    return this.#over;
  }

  /** Sends a command to the worker, and waits for its answer. */
  async command(command: WorkerCommand, timeoutMs = 0, file?: number): Promise<WorkerAnswer> {
    const { record, killed } = this.session;
    if (this.#over || (record.parked && killed)) return { kind: 'ended' };
    if (record.parked)
      return command.startsWith('suspend')
        ? { kind: 'done', bytes: 0 }
        : { kind: 'refused', reason: 'its worker is in a file' };
    const { addon, files } = this.#options;
    const answer = await sendWorkerCommand(addon, files.commands, command, { timeoutMs, file });
    const lives = !this.#over && isAlive(this.session.record.worker);
    return lives ? answer : { kind: 'ended' };
  }

  /** The same without an answer, for a worker that may not have begun. */
  tell(command: WorkerCommand): void {
    if (this.session.record.parked) return;
    tellWorker(this.#options.addon, this.#options.files.commands, command);
  }

  /** Removes its files. Requires that the session has ended. */
  remove(): void {
    this.#options.files.remove();
  }

  /** Detaches this gpu-proxy. The session continues, and the next gpu-proxy finds it. */
  leave(): void {
    this.#over = true;
    this.#stopWaiting();
    this.#worker.leave();
    this.arena.detach();
    this.#options.files.leave();
  }

  #wholeRecord(): SessionRecord {
    const { record } = this.#options;
    const { pid } = this.#worker;
    return record.worker.pid === pid
      ? record
      : { ...record, worker: { pid, startTime: identifyProcess(pid).startTime ?? '' } };
  }

  /**
   * Writes the worker's pid to the record, then watches client and files. If gpu-proxy is killed
   * before the write, the next one searches for the worker.
   */
  #attend(): void {
    const { record, files } = this.#options;
    if (this.session.record !== record) files.writeRecord(this.session.record);
    this.#unwatchClient = this.#watchClient();
    files.follow({
      report: (line, told) => this.#takeReport(line, told),
      log: (line) => this.#options.workerLog.add(this.session.logger, line),
      endless: () => this.#endEndless(),
    });
  }

  /**
   * Kills a worker that cannot be supervised (no free descriptor, a full disk). Its slot becomes
   * free after its exit.
   */
  #giveUp(error: Error): void {
    const said = new ProxyError('WORKER_NOT_STARTED', {
      pid: this.session.record.client.pid,
      reason: systemReason(error),
    });
    this.session.logger.error(said.message);
    this.#options.trouble(said);
    this.kill();
  }

  /** A client outside of this PID namespace has pid 0. Only its worker notices its end. */
  #watchClient(): () => void {
    const { record, addon } = this.#options;
    return record.client.pid === 0
      ? () => {}
      : addon.watchProcess(record.client, () => this.#noteClientGone());
  }

  #takeReport(line: string, told: boolean): void {
    const report = parseReport(line);
    if (!report) {
      if (!this.#noReport)
        this.session.logger.warn(
          { line: line.slice(0, 200) },
          'the worker wrote a line that is not a report',
        );
      this.#noReport = true;
      return;
    }
    const before = this.session.introduced;
    this.session.apply(report);
    if (!told) this.#tellTrouble(report);
    if (before) return;
    clearTimeout(this.#silence);
    this.#options.introduced(this.session);
  }

  #tellTrouble(report: Report): void {
    const trouble = troubleOf(report, this.session.record.client);
    if (!trouble) return;
    this.#options.trouble(trouble);
    try {
      this.#options.files.noteTold();
    } catch (error) {
      this.session.logger.warn(
        'the error was reported, but the next gpu-proxy will report it again: ' +
          `${systemReason(error)}`,
      );
    }
  }

  #noteClientGone(): void {
    this.#endBegun ??= Date.now();
    this.#orphan = setTimeout(() => {
      this.session.logger.error(
        { pid: this.session.record.client.pid },
        'the worker did not end with its client and is killed',
      );
      this.kill();
    }, ORPHAN_GRACE_MS).unref();
  }

  #endSilent(): void {
    this.session.logger.warn(
      { pid: this.session.record.client.pid },
      'a program connected and sent nothing: its connection is closed',
    );
    this.kill();
  }

  #endEndless(): void {
    const { pid, program } = this.session.record.client;
    const said = new ProxyError('REPORT_ENDLESS', {
      pid,
      program,
      limit: formatMemorySize(REPORT_BYTES),
    });
    this.session.logger.error(said.message);
    this.#options.trouble(said);
    this.kill();
  }

  #end(exit: WorkerExit | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopWaiting();
    this.#endParked();
    this.arena.end();
    this.#options.files.finish();
    this.session.end(exit, this.#options.memory().peak, this.#endBegun);
    if (this.session.died && !this.session.killed) this.#options.trouble(deathOf(this.session));
    this.#options.ended();
  }

  /** Nobody else needs these processes. */
  #endParked(): void {
    const { worker, keeper, restored } = this.session.record.parked ?? {};
    for (const each of [worker, keeper, restored])
      if (each && isAlive(each)) process.kill(each.pid, 'SIGKILL');
  }

  #stopWaiting(): void {
    clearTimeout(this.#silence);
    clearTimeout(this.#orphan);
    this.#unwatchClient();
  }
}

function troubleOf(report: Report, { pid, program }: ProcessRecord): ProxyError | undefined {
  const client = { pid, program };
  switch (report.event) {
    case 'refused':
      return new ProxyError('SESSION_REFUSED', { ...client, reason: report.sentence });
    case 'overQuota':
      return new ProxyError('MEMORY_QUOTA_REACHED', {
        ...client,
        ...sizes(report),
        used: formatMemorySize(report.used),
      });
    case 'overPinned':
      return new ProxyError('PINNED_MEMORY_REACHED', { ...client, ...sizes(report) });
    case 'overHandles':
      return new ProxyError('HANDLES_REACHED', { ...client, limit: report.limit });
    case 'overThreads':
      return new ProxyError('THREADS_REACHED', { ...client, limit: report.limit });
    case 'overrun':
      return new ProxyError('OVERRUN_REACHED', { ...client, seconds: report.seconds });
    default:
      return undefined;
  }
}

function sizes({ asked, limit }: { asked: number; limit: number }): {
  asked: string;
  limit: string;
} {
  return { asked: formatMemorySize(asked), limit: formatMemorySize(limit) };
}

function deathOf({ record: { client }, ended = '' }: Session): ProxyError {
  return new ProxyError('WORKER_DIED', { pid: client.pid, program: client.program, reason: ended });
}
