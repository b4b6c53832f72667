import type { ProcessRecord, SessionRecord, SessionUse } from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import type { Addon } from './addon.js';
import type { Backend } from './backend.js';
import { ProxyError, systemReason } from './errors.js';
import { type Figures, NO_FIGURES, readFigures } from './figures.js';
import { formatMemorySize } from './memory-size.js';
import { identifyProcess } from './process-table.js';
import type { SlotUse } from './quota.js';
import { parseReport, type Report, Session } from './session.js';
import { REPORT_BYTES, type SessionFiles } from './session-files.js';
import type { Worker, WorkerExit, WorkerListener, WorkerStart } from './worker.js';
import type { WorkerLog } from './worker-log.js';

export interface LiveSessionOptions {
  readonly record: SessionRecord;
  readonly files: SessionFiles;
  readonly addon: Addon;
  readonly backend: Backend;
  readonly logger: Logger;
  /** Of all sessions of the allocation. */
  readonly workerLog: Pick<WorkerLog, 'add'>;
  /** The slot of the quota file. */
  memory(): Pick<SlotUse, 'used' | 'peak'>;
  /** Its client has said hello. */
  introduced(session: Session): void;
  /** Something went wrong that its user should know; not what another proxy has told. */
  trouble(error: ProxyError): void;
  ended(): void;
}

/** A worker ends by itself when its client does; one that has not after this long is stuck and is killed. */
const ORPHAN_GRACE_MS = 10_000;
/** Who connects and says nothing for so long is sent away. */
const SILENCE_MS = 60_000;

/** A session while its worker lives: hears the worker, sees both processes end, cleans up. */
export class LiveSession {
  readonly session: Session;
  readonly #options: LiveSessionOptions;
  readonly #worker: Worker;
  #unwatchClient = () => {};
  readonly #silence: NodeJS.Timeout;
  #orphan: NodeJS.Timeout | undefined;
  /** When its client was seen gone or gpu-proxy ended it, whichever came first: from then on the worker has no more to do than to end. */
  #endBegun: number | undefined;
  #over = false;
  /** A line that is no report was logged: one says as much as many. */
  #noReport = false;
  #figures = NO_FIGURES;
  #figuresLost = false;

  /** @param worker makes it, or finds it, and tells the listener of its end, not before it returns. */
  constructor(options: LiveSessionOptions, worker: (listener: WorkerListener) => Worker) {
    this.#options = options;
    this.#worker = worker({
      failed: (error) => {
        const { pid } = options.record.client;
        options.logger.error(new ProxyError('WORKER_NOT_STARTED', { pid, reason: systemReason(error) }).message);
        this.#end({ status: null, signal: null });
      },
      exited: (exit) => this.#end(exit),
    });
    this.session = new Session(this.#wholeRecord(), options.backend, options.logger);
    // Before the first look at the report: what stands there already ends the silence too.
    this.#silence = setTimeout(() => this.#endSilent(), SILENCE_MS).unref();
    try {
      this.#attend();
    } catch (error) {
      if (this.#worker.start === 'found') {
        // Its timers must not end what another proxy can take over.
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

  /** All that its worker counts; where its file is gone, what that said last: counters must not fall. */
  get figures(): Figures {
    try {
      this.#figures = readFigures(this.#options.files.figures);
    } catch (error) {
      if (!this.#figuresLost) this.session.logger.error(`The figures of the session cannot be read any more: ${systemReason(error)}.`);
      this.#figuresLost = true;
    }
    return this.#figures;
  }

  /** Ends it now: the client gets an error from its next call. */
  kill(): void {
    this.#endBegun ??= Date.now();
    this.session.killed = true;
    this.#worker.kill();
  }

  /** Only after its end. */
  remove(): void {
    this.#options.files.remove();
  }

  /** It goes on; another proxy will find it. */
  leave(): void {
    this.#over = true;
    this.#stopWaiting();
    this.#worker.leave();
    this.#options.files.leave();
  }

  #wholeRecord(): SessionRecord {
    const { record } = this.#options;
    const { pid } = this.#worker;
    return record.worker.pid === pid ? record : { ...record, worker: { pid, startTime: identifyProcess(pid).startTime ?? '' } };
  }

  /** A proxy that is killed before the record is written leaves one without a worker, and the next one looks for it. */
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

  /** The worker is there and cannot be looked after (no descriptor, a full disk): its slot is free once it has ended. */
  #giveUp(error: Error): void {
    const said = new ProxyError('WORKER_NOT_STARTED', { pid: this.session.record.client.pid, reason: systemReason(error) });
    this.session.logger.error(said.message);
    this.#options.trouble(said);
    this.kill();
  }

  /** A client in a pid namespace that we cannot see has pid 0: its worker alone sees it end. */
  #watchClient(): () => void {
    const { record, addon } = this.#options;
    return record.client.pid === 0 ? () => {} : addon.watchProcess(record.client, () => this.#noteClientGone());
  }

  #takeReport(line: string, told: boolean): void {
    const report = parseReport(line);
    if (!report) {
      if (!this.#noReport) this.session.logger.warn({ line: line.slice(0, 200) }, 'the worker wrote a line that is no report');
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
      this.session.logger.warn(`another gpu-proxy will tell it again: ${systemReason(error)}`);
    }
  }

  #noteClientGone(): void {
    this.#endBegun ??= Date.now();
    this.#orphan = setTimeout(() => {
      this.session.logger.error({ pid: this.session.record.client.pid }, 'the worker outlived its client and is killed');
      this.kill();
    }, ORPHAN_GRACE_MS).unref();
  }

  #endSilent(): void {
    this.session.logger.warn({ pid: this.session.record.client.pid }, 'a program connected and said nothing: it is sent away');
    this.kill();
  }

  #endEndless(): void {
    const { pid, program } = this.session.record.client;
    const said = new ProxyError('REPORT_ENDLESS', { pid, program, limit: formatMemorySize(REPORT_BYTES) });
    this.session.logger.error(said.message);
    this.#options.trouble(said);
    this.kill();
  }

  #end(exit: WorkerExit | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopWaiting();
    this.#options.files.finish();
    this.session.end(exit, this.#options.memory().peak, this.#endBegun);
    if (this.session.died && !this.session.killed) this.#options.trouble(deathOf(this.session));
    this.#options.ended();
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
      return new ProxyError('MEMORY_QUOTA_REACHED', { ...client, ...sizes(report), used: formatMemorySize(report.used) });
    case 'overPinned':
      return new ProxyError('PINNED_MEMORY_REACHED', { ...client, ...sizes(report) });
    case 'overHandles':
      return new ProxyError('HANDLES_REACHED', { ...client, limit: report.limit });
    case 'overThreads':
      return new ProxyError('THREADS_REACHED', { ...client, limit: report.limit });
    default:
      return undefined;
  }
}

function sizes({ asked, limit }: { asked: number; limit: number }): { asked: string; limit: string } {
  return { asked: formatMemorySize(asked), limit: formatMemorySize(limit) };
}

function deathOf({ record: { client }, ended = '' }: Session): ProxyError {
  return new ProxyError('WORKER_DIED', { pid: client.pid, program: client.program, reason: ended });
}
