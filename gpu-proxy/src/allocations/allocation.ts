import { chownSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import path from 'node:path';
import type { AllocationSpecification, SessionRecord } from '@nvidia-virtual/ledger';
import { GRANT } from '@nvidia-virtual/node-state/grant';
import { SPECIFICATION } from '@nvidia-virtual/node-state/paths';
import { readSpecification } from '@nvidia-virtual/node-state/specification';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { removeDirectoryAtomically, removeUnfinished } from '@nvidia-virtual/service/files';
import {
  findProcess,
  identifyProcess,
  isAlive,
  type ProcessIdentity,
} from '@nvidia-virtual/service/process-table';
import type { Logger } from 'pino';
import type { PeerCredentials } from '../host/addon.js';
import { LiveSession } from '../sessions/live-session.js';
import type { Session } from '../sessions/session.js';
import { SessionFiles } from '../sessions/session-files.js';
import { FoundWorker, type Worker, type WorkerListener } from '../workers/worker.js';
import { WorkerLog } from '../workers/worker-log.js';
import {
  makeAllocationDirectory,
  makeParts,
  openQuota,
  readHolder,
  readLastNumber,
  removeParts,
  writeLastNumber,
  writeSpecification,
} from './allocation-directory.js';
import type { AllocationHost } from './allocation-host.js';
import { ClientSocket } from './client-socket.js';
import { ExportTable, SHARING } from './export-table.js';
import { QuotaFile } from './quota.js';
import { sendRefusal } from './refusal.js';
import { RefusalLog } from './refusal-log.js';
import { StartRateLimit } from './start-rate-limit.js';
import { startSessionWorker } from './start-session-worker.js';

/** A connection in the queue for a worker. */
interface Waiting {
  readonly connection: Socket;
  readonly peer: PeerCredentials;
}

/** A session of an earlier gpu-proxy. */
interface FoundSession {
  readonly files: SessionFiles;
  readonly record: SessionRecord | undefined;
  readonly worker: ProcessIdentity | undefined;
  readonly lives: boolean;
}

/**
 * Limit on concurrent worker starts of an allocation. Further connections queue, so a tenant cannot
 * flood the node with processes.
 */
const STARTING_AT_ONCE = 16;

/**
 * What a tenant was granted on this node. Its directory holds the specification (the source of
 * truth), the memory account, the socket of its clients, and a directory for each session.
 */
export class Allocation {
  readonly directory: string;
  readonly #host: AllocationHost;
  readonly #logger: Logger;
  readonly #quota: QuotaFile;
  readonly #sessions = new Map<number, LiveSession>();
  readonly #refusals: RefusalLog;
  readonly #workerLog: WorkerLog;
  #specification: AllocationSpecification;
  #socket: ClientSocket;
  #waiting: Waiting[] = [];
  readonly #starts = new StartRateLimit();
  #turn: NodeJS.Immediate | undefined;
  #later: NodeJS.Timeout | undefined;
  #lastNumber: number;
  /** Set when the allocation is removed or unbound. */
  #peak: number | undefined;
  #idle: (() => void)[] = [];

  private constructor(
    directory: string,
    specification: AllocationSpecification,
    quota: QuotaFile,
    host: AllocationHost,
    socket = new ClientSocket(path.join(directory, 'client', 'gpu.sock'), host.closer, () => {}),
  ) {
    this.directory = directory;
    this.#specification = specification;
    this.#quota = quota;
    this.#host = host;
    this.#logger = host.logger.child({ allocation: specification.id, name: specification.name });
    this.#refusals = new RefusalLog(this.#logger);
    this.#workerLog = new WorkerLog(this.#logger);
    this.#socket = socket;
    socket.accept = (connection) => this.accept(connection);
    this.#lastNumber = readLastNumber(directory);
  }

  /** Creates the directory atomically. Clients cannot connect until listen(). */
  static create(
    parent: string,
    specification: AllocationSpecification,
    host: AllocationHost,
    holder?: ProcessIdentity,
  ): Allocation {
    const directory = path.join(parent, specification.id);
    makeAllocationDirectory(directory, specification, holder);
    return new Allocation(
      directory,
      specification,
      QuotaFile.open(path.join(directory, 'quota')),
      host,
    );
  }

  /**
   * Turns a grant, whose directory and socket exist, into an allocation. The specification is
   * written last: until then the directory is a grant.
   */
  static bind(
    directory: string,
    specification: AllocationSpecification,
    host: AllocationHost,
    socket: ClientSocket,
  ): Allocation {
    removeParts(directory);
    makeParts(directory, specification);
    return new Allocation(
      directory,
      specification,
      QuotaFile.open(path.join(directory, 'quota')),
      host,
      socket,
    );
  }

  /**
   * Takes over the allocation of an earlier gpu-proxy. Live sessions continue; dead ones are
   * removed. @throws ProxyError
   */
  static load(directory: string, host: AllocationHost): Allocation {
    const specification = readSpecification(path.join(directory, SPECIFICATION));
    const isOld = !existsSync(path.join(directory, SHARING)); // of a version without exports
    if (isOld) ExportTable.make(directory);
    const allocation = new Allocation(
      directory,
      specification,
      openQuota(path.join(directory, 'quota')),
      host,
    );
    try {
      if (isOld) allocation.giveDirectories();
      allocation.#takeSessionsOver();
    } catch (error) {
      allocation.leave();
      throw error;
    }
    return allocation;
  }

  get specification(): AllocationSpecification {
    return this.#specification;
  }

  /** True if the kubelet granted it. The directory then stays for the life of its pod. */
  get granted(): boolean {
    return existsSync(path.join(this.directory, GRANT));
  }

  get id(): string {
    return this.#specification.id;
  }

  /** Whether clients can connect. */
  get listening(): boolean {
    return this.#socket.open;
  }

  /** The socket of its clients. */
  get socketPath(): string {
    return this.#socket.path;
  }

  /** Includes connections in the queue for a worker. */
  get sessionCount(): number {
    return this.#sessions.size + this.#waiting.length;
  }

  /** The process for which it was created; the allocation ends with it. */
  get holder(): ProcessIdentity | undefined {
    return readHolder(this.directory);
  }

  get sessions(): LiveSession[] {
    return [...this.#sessions.values()];
  }

  /** The directory where the driver of its workers caches compiled code. */
  get cache(): string {
    return path.join(this.directory, 'cache');
  }

  /** Requires that no session is left, because workers write to the cache. */
  emptyCache(): void {
    rmSync(this.cache, { recursive: true, force: true });
    mkdirSync(this.cache, { mode: 0o700 });
    this.giveDirectories();
  }

  /** Makes the user of the workers the owner of the directories that they write to. */
  giveDirectories(): void {
    const { uid } = this.#specification;
    if (uid === undefined) return;
    for (const written of [this.cache, path.join(this.directory, SHARING)])
      chownSync(written, uid, uid);
  }

  /** Bytes in use by all sessions together. */
  get memoryUsed(): number {
    return this.#quota.readUsed();
  }

  /** Peak of memoryUsed, in bytes. */
  get peakMemory(): number {
    return this.#peak ?? this.#quota.readPeak();
  }

  /**
   * @param socketPath a socket outside its directory. @throws ProxyError if the socket cannot be
   * created.
   */
  async listen(socketPath?: string): Promise<void> {
    if (socketPath !== undefined)
      this.#socket = new ClientSocket(
        socketPath,
        this.#host.closer,
        (connection) => this.accept(connection),
        'elsewhere',
      );
    await this.#socket.listen();
  }

  /** Refuses new sessions from now on, also after a restart. */
  drain(): void {
    this.#specification = { ...this.#specification, draining: true };
    writeSpecification(this.directory, this.#specification);
  }

  /** Accepts no more connections and drops queued ones. Sessions continue. */
  stopAccepting(): void {
    this.#socket.close();
    clearTimeout(this.#later);
    for (const { connection } of this.#waiting.splice(0)) connection.destroy();
    this.#noteIdle();
  }

  /** Resolves when no session is left. */
  whenIdle(): Promise<void> {
    if (this.sessionCount === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Retries queued connections. Called when the node may have room for their workers. */
  resume(): void {
    if (this.#waiting.length > 0) this.#takeTurns();
  }

  /** Kills every session. The next CUDA call of each client fails. */
  kill(): void {
    for (const { connection } of this.#waiting.splice(0)) connection.destroy();
    for (const session of this.#sessions.values()) session.kill();
    this.#noteIdle();
  }

  /** Requires that no session is left. */
  remove(): void {
    this.stopAccepting();
    this.#finish();
    removeDirectoryAtomically(this.directory);
  }

  /**
   * Turns the allocation back into a grant and returns its socket to the caller. Requires that no
   * session is left.
   */
  unbind(): ClientSocket {
    this.#finish();
    rmSync(path.join(this.directory, SPECIFICATION), { force: true });
    removeParts(this.directory);
    return this.#socket;
  }

  /**
   * Detaches this gpu-proxy; sessions continue. Clients that connect meanwhile retry until the next
   * gpu-proxy listens.
   */
  leave(): void {
    this.#socket.leave();
    clearImmediate(this.#turn);
    clearTimeout(this.#later);
    for (const { connection } of this.#waiting.splice(0)) connection.destroy();
    for (const session of this.#sessions.values()) session.leave();
    this.#refusals.end();
    this.#workerLog.end();
    this.#quota.close();
  }

  /** Accepts a connection. Nothing may have been read from it. */
  accept(connection: Socket): void {
    try {
      const peer = this.#host.addon.peerCredentials(connection);
      if (hasGone(peer)) {
        connection.destroy();
        return;
      }
      const why = this.#whyRefused(connection, peer);
      if (why) {
        this.#refuse(connection, why);
        return;
      }
      this.#waiting.push({ connection, peer });
      this.#takeTurns();
    } catch (error) {
      connection.destroy();
      this.#logger.error((error as Error).message);
    }
  }

  #refuse(connection: Socket, why: ProxyError): void {
    sendRefusal(this.#host.closer, connection, why.message);
    this.#refusals.add(why);
    // whyNotAllowed() reports its own refusals.
    if (why.code === 'SESSIONS_FULL' || why.code === 'ALLOCATION_DRAINING')
      this.#host.trouble(this.#specification, why);
  }

  #whyRefused(connection: Socket, { pid }: PeerCredentials): ProxyError | undefined {
    const { draining, limits } = this.#specification;
    const values = { pid, id: this.id, limit: limits.sessions };
    if (draining) return new ProxyError('ALLOCATION_DRAINING', values);
    if (this.sessionCount >= limits.sessions) return new ProxyError('SESSIONS_FULL', values);
    return this.#host.whyNotAllowed(this.#specification, connection);
  }

  #finish(): void {
    this.#refusals.end();
    this.#workerLog.end();
    this.#peak = this.#quota.readPeak();
    this.#quota.close();
  }

  /**
   * Starts one worker in each turn of the event loop, so that no allocation delays another.
   */
  #takeTurns(): void {
    if (this.#turn) return;
    this.#turn = setImmediate(() => {
      this.#turn = undefined;
      const starting = this.sessions.filter(({ session }) => !session.introduced).length;
      const may =
        starting < STARTING_AT_ONCE &&
        this.#host.mayStart(this.#specification) &&
        !this.#mustWait();
      const next = may ? this.#waiting.shift() : undefined;
      if (!next) return;
      this.#serve(next);
      this.#takeTurns();
    });
  }

  #mustWait(): boolean {
    const milliseconds = this.#starts.wait();
    if (milliseconds === 0) return false;
    clearTimeout(this.#later);
    this.#later = setTimeout(() => this.#takeTurns(), milliseconds).unref();
    return true;
  }

  #serve({ connection, peer }: Waiting): void {
    if (hasGone(peer)) {
      connection.destroy();
      this.#noteIdle();
      return;
    }
    const slot = this.#quota.takeSlot();
    this.#starts.take();
    let files: SessionFiles | undefined;
    try {
      if (slot === undefined) throw new Error('the memory account has no slot left');
      const record = this.#newRecord(peer, slot);
      const made = SessionFiles.make(
        path.join(this.directory, 'sessions', String(record.number)),
        record,
      );
      files = made;
      this.#begin(record, made, (listener) =>
        startSessionWorker(
          {
            host: this.#host,
            specification: this.#specification,
            directory: this.directory,
            cache: this.cache,
            quotaPath: this.#quota.path,
            record,
            connection,
            files: made,
          },
          listener,
        ),
      );
    } catch (error) {
      if (slot !== undefined) this.#quota.releaseSlot(slot);
      this.#removeUnused(files);
      this.#noteNotStarted(connection, peer, error as Error);
      this.#noteIdle();
    }
  }

  /** Removes the files of a session without a worker. If that fails, the next gpu-proxy does it. */
  #removeUnused(files: SessionFiles | undefined): void {
    try {
      files?.remove();
    } catch (error) {
      this.#logger.warn(
        `the files of a session that did not start could not be removed: ${systemReason(error)}`,
      );
    }
  }

  #noteNotStarted(connection: Socket, { pid }: PeerCredentials, error: Error): void {
    const said =
      error instanceof ProxyError
        ? error
        : new ProxyError('WORKER_NOT_STARTED', { pid, reason: error.message });
    sendRefusal(this.#host.closer, connection, said.message);
    this.#logger.error(said.message);
    this.#host.trouble(this.#specification, said);
  }

  #newRecord(peer: PeerCredentials, slot: number): SessionRecord {
    const { startTime = '', program } = identifyProcess(peer.pid);
    this.#lastNumber++;
    writeLastNumber(this.directory, this.#lastNumber);
    return {
      version: 1,
      number: this.#lastNumber,
      allocation: this.id,
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
    const session: LiveSession = new LiveSession(
      {
        ...{ record, files, addon: this.#host.addon, backend: this.#host.backend },
        logger: this.#logger.child({ session: record.number }),
        workerLog: this.#workerLog,
        memory: () => this.#quota.readSlot(record.slot),
        introduced: (introduced) => this.#noteIntroduced(introduced),
        trouble: (error) => this.#host.trouble(this.#specification, error),
        ended: () => this.#end(session),
      },
      worker,
    );
    this.#sessions.set(record.number, session);
    this.#host.sessionStarted(session);
  }

  #noteIntroduced({ gpu }: Session): void {
    if (gpu) this.#starts.giveBack();
    this.#takeTurns();
  }

  #end(live: LiveSession): void {
    const { record } = live.session;
    const last = { use: live.use, roundTrips: live.figures.roundTrips };
    this.#sessions.delete(record.number);
    this.#quota.releaseSlot(record.slot);
    // Report the end before removing the files. If gpu-proxy is killed in between, the next one
    // finds the files and recognises the session by its number.
    this.#host.sessionEnded(live.session, last);
    live.remove();
    this.#takeTurns();
    this.#noteIdle();
  }

  #noteIdle(): void {
    if (this.sessionCount > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #takeSessionsOver(): void {
    const parent = path.join(this.directory, 'sessions');
    removeUnfinished(parent);
    const found = readdirSync(parent).map((name) =>
      this.#find(new SessionFiles(path.join(parent, name))),
    );
    // A slot belongs to one worker. Live workers claim their slots before dead ones.
    for (const one of [
      ...found.filter(({ lives }) => lives),
      ...found.filter(({ lives }) => !lives),
    ])
      this.#takeOver(one);
    this.#quota.clearOthers();
  }

  #find(files: SessionFiles): FoundSession {
    const record = files.readRecord();
    const worker = record && findWorker(record, files);
    return { files, record, worker, lives: worker !== undefined && isAlive(worker) };
  }

  #takeOver({ files, record, worker }: FoundSession): void {
    if (!record || !worker || !this.#quota.claimSlot(record.slot)) {
      files.remove();
      return;
    }
    this.#begin(record, files, (listener) => new FoundWorker(this.#host.addon, worker, listener));
  }
}

/**
 * A record without a pid is from a gpu-proxy that was killed while it started the worker. Then the
 * path of the figures on the command line identifies the worker. The slot does not: slots are
 * reused.
 */
function findWorker(
  { worker }: SessionRecord,
  { figures }: SessionFiles,
): ProcessIdentity | undefined {
  return worker.pid > 0 ? { ...worker, program: '' } : findProcess('--figures', figures);
}

/**
 * Connections of dead clients get no worker. A pid of 0 means that the client is outside of this
 * PID namespace.
 */
function hasGone({ pid }: PeerCredentials): boolean {
  return pid > 0 && !isAlive(identifyProcess(pid));
}
