import { readdirSync } from 'node:fs';
import type { Socket } from 'node:net';
import path from 'node:path';
import type { SessionRecord } from '@nvidia-virtual/ledger';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { removeUnfinished } from '@nvidia-virtual/service/files';
import {
  findProcess,
  identifyProcess,
  isAlive,
  type ProcessId,
} from '@nvidia-virtual/service/process-table';
import type { Logger } from 'pino';
import type { PeerCredentials } from '../host/addon.js';
import { LiveSession } from '../sessions/live-session.js';
import { SessionFiles } from '../sessions/session-files.js';
import { FoundWorker, type Worker, type WorkerListener } from '../workers/worker.js';
import { WorkerLog } from '../workers/worker-log.js';
import type { AllocationDirectory } from './allocation-directory.js';
import type { AllocationHost } from './allocation-host.js';
import type { QueuedConnection } from './connection-queue.js';
import { QuotaFile } from './quota.js';
import { sendRefusal } from './refusal.js';
import { startSessionWorker, tenantOf } from './start-session-worker.js';

interface AllocationSessionsOptions {
  readonly host: AllocationHost;
  readonly directory: AllocationDirectory;
  readonly logger: Logger;
  /** Whether the memory of its sessions is on the GPU, and stays there. */
  resident(): boolean;
  /** Called after the first report of a worker. */
  introduced(session: LiveSession): void;
  /** A session ended, or could not start. */
  ended(): void;
}

/** A library sends its hello at once. */
const HELLO_MS = 1000;

/** A session of an earlier gpu-proxy. */
interface FoundSession {
  readonly files: SessionFiles;
  readonly record: SessionRecord | undefined;
  readonly worker: ProcessId | undefined;
  readonly lives: boolean;
}

/**
 * The sessions of one allocation: starts their workers, takes over those of an earlier gpu-proxy,
 * and gives each a slot of the memory account.
 */
export class AllocationSessions {
  readonly #options: AllocationSessionsOptions;
  readonly #sessions = new Map<number, LiveSession>();
  readonly #quota: QuotaFile;
  readonly #workerLog: WorkerLog;
  /** The last client that got a warm worker became no session. */
  #wasted = false;
  /** Set at the end, when the memory account is closed. */
  #peak: number | undefined;

  /** @throws ProxyError if the memory account cannot be read */
  constructor(options: AllocationSessionsOptions) {
    this.#options = options;
    this.#quota = openQuota(options.directory.quota);
    this.#workerLog = new WorkerLog(options.logger);
  }

  get all(): LiveSession[] {
    return [...this.#sessions.values()];
  }

  get count(): number {
    return this.#sessions.size;
  }

  /** Bytes in use by all sessions together. */
  get memoryUsed(): number {
    return this.#quota.readUsed();
  }

  /** Peak of memoryUsed, in bytes. */
  get peakMemory(): number {
    return this.#peak ?? this.#quota.readPeak();
  }

  /** Starts a session for a connection. On failure, refuses the connection. */
  start({ connection, peer }: QueuedConnection): void {
    const slot = this.#quota.takeSlot();
    let files: SessionFiles | undefined;
    try {
      if (slot === undefined) throw new Error('the memory account has no slot left');
      const record = this.#newRecord(peer, slot);
      const made = SessionFiles.make(
        path.join(this.#options.directory.sessions, String(record.number)),
        record,
      );
      files = made;
      const { host, directory } = this.#options;
      this.#begin(record, made, (listener) =>
        startSessionWorker(
          { host, directory, record, connection, files: made, mayBeWarm: this.#mayBeWarm() },
          listener,
        ),
      );
    } catch (error) {
      if (slot !== undefined) this.#quota.releaseSlot(slot);
      this.#removeUnused(files);
      this.#refuse(connection, peer, error as Error);
      this.#options.ended();
    }
  }

  /** Live sessions of an earlier gpu-proxy continue; dead ones are removed. */
  takeOver(): void {
    const parent = this.#options.directory.sessions;
    removeUnfinished(parent);
    const found = readdirSync(parent).map((name) =>
      find(new SessionFiles(path.join(parent, name))),
    );
    // A slot belongs to one worker. Live workers claim their slots before dead ones.
    for (const one of [
      ...found.filter(({ lives }) => lives),
      ...found.filter(({ lives }) => !lives),
    ])
      this.#takeOver(one);
    this.#quota.clearOthers();
  }

  /** Kills every session. The next CUDA call of each client fails. */
  kill(): void {
    for (const session of this.#sessions.values()) session.kill();
  }

  /** Detaches; sessions continue. */
  leave(): void {
    for (const session of this.#sessions.values()) session.leave();
    this.#workerLog.end();
    this.#quota.close();
  }

  /** Requires that no session is left. */
  end(): void {
    this.#workerLog.end();
    this.#peak = this.#quota.readPeak();
    this.#quota.close();
  }

  /**
   * The node pays for the start of a warm worker and, until the hello, for its memory. So clients
   * that send nothing get no further ones until a program of the allocation begins.
   */
  #mayBeWarm(): boolean {
    const silent = this.all.some(
      ({ workerStart, session: { introduced, record } }) =>
        workerStart === 'warm' &&
        !introduced &&
        Date.now() - Date.parse(record.startedAt) > HELLO_MS,
    );
    return !silent && !this.#wasted;
  }

  #newRecord(peer: PeerCredentials, slot: number): SessionRecord {
    const { startTime = '', program } = identifyProcess(peer.pid);
    return {
      version: 1,
      number: this.#options.directory.nextSessionNumber(),
      allocation: this.#options.directory.specification.id,
      client: { pid: peer.pid, startTime, program, uid: peer.uid },
      worker: { pid: 0, startTime: '' },
      slot,
      startedAt: new Date().toISOString(),
    };
  }

  #begin(
    record: SessionRecord,
    files: SessionFiles,
    worker: (listener: WorkerListener) => Worker,
  ): void {
    const { host, logger } = this.#options;
    const session: LiveSession = new LiveSession(
      {
        ...{ record, files, addon: host.addon, backend: host.backend },
        logger: logger.child({ session: record.number }),
        workerLog: this.#workerLog,
        arenas: host.arenas,
        resident: () => this.#options.resident(),
        memory: () => this.#quota.readSlot(record.slot),
        introduced: () => this.#noteIntroduced(record.number),
        trouble: (error) => this.#tell(error),
        ended: () => this.#end(session),
      },
      worker,
    );
    this.#sessions.set(record.number, session);
    host.sessionStarted(session);
    // Its worker may have reported before it was in the list.
    if (session.workerStart !== 'found' && session.session.introduced)
      this.#noteIntroduced(record.number);
  }

  /** A session may have reported before it is in the list. */
  #noteIntroduced(number: number): void {
    const session = this.#sessions.get(number);
    if (session?.session.gpu) this.#wasted = false;
    if (session) this.#options.introduced(session);
  }

  #end(live: LiveSession): void {
    const { record, gpu } = live.session;
    if (live.workerStart === 'warm' && !gpu) this.#wasted = true;
    const last = { use: live.use, roundTrips: live.figures.roundTrips };
    this.#sessions.delete(record.number);
    this.#quota.releaseSlot(record.slot);
    // Report the end before removing the files. If gpu-proxy is killed in between, the next one
    // finds the files and recognises the session by its number.
    this.#options.host.sessionEnded(live.session, last);
    live.remove();
    this.#options.ended();
  }

  /** Removes the files of a session without a worker. If that fails, the next gpu-proxy does it. */
  #removeUnused(files: SessionFiles | undefined): void {
    try {
      files?.remove();
    } catch (error) {
      this.#options.logger.warn(
        `the files of a session that did not start could not be removed: ${systemReason(error)}`,
      );
    }
  }

  #refuse(connection: Socket, { pid }: PeerCredentials, error: Error): void {
    const said =
      error instanceof ProxyError
        ? error
        : new ProxyError('WORKER_NOT_STARTED', { pid, reason: error.message });
    sendRefusal(this.#options.host.closer, connection, said);
    this.#options.logger.error(said.message);
    this.#tell(said);
  }

  #tell(error: ProxyError): void {
    this.#options.host.trouble(this.#options.directory.specification, error);
  }

  #takeOver({ files, record, worker }: FoundSession): void {
    if (!record || !worker || !this.#quota.claimSlot(record.slot)) {
      files.remove();
      return;
    }
    const { host, directory } = this.#options;
    const { addon, launcher } = host;
    const tenant = tenantOf({ directory, record });
    // A gpu-proxy of an earlier version may have left the pod's cgroup without a filter.
    if (tenant) launcher.move(worker.pid, tenant);
    this.#begin(record, files, (listener) => new FoundWorker(addon, worker, listener));
  }
}

function openQuota(file: string): QuotaFile {
  try {
    return QuotaFile.open(file);
  } catch (error) {
    throw new ProxyError('SPECIFICATION_BROKEN', { file, reason: (error as Error).message });
  }
}

function find(files: SessionFiles): FoundSession {
  const record = files.readRecord();
  const worker = record && findWorker(record, files);
  return { files, record, worker, lives: worker !== undefined && isAlive(worker) };
}

/**
 * A record without a pid is from a gpu-proxy that was killed while it started the worker. Then the
 * path of the figures on the command line identifies the worker. The slot does not: slots are
 * reused.
 */
function findWorker(
  { worker, parked }: SessionRecord,
  { figures }: SessionFiles,
): ProcessId | undefined {
  // The keeper has ended because the process has its files.
  const restored = parked?.restored;
  if (restored && isAlive(restored) && !isAlive(worker)) return restored;
  return worker.pid > 0 ? worker : findProcess('--figures', figures);
}
