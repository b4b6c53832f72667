import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import path from 'node:path';
import type { AllocationSpecification, DriverMemory, SessionRecord, SessionUse } from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import type { Addon, PeerCredentials } from './addon.js';
import type { Backend } from './backend.js';
import { ClientSocket } from './client-socket.js';
import type { MpsClient } from './concurrent-gpus.js';
import { ProxyError, systemReason } from './errors.js';
import { makeDirectoryAtomically, readIfThere, removeDirectoryAtomically, removeUnfinished, writeFileAtomically } from './files.js';
import { GRANT, readGrant } from './grant.js';
import { type Installation, workerOf } from './installation.js';
import type { Launcher, Tenant } from './launcher.js';
import { LiveSession } from './live-session.js';
import { findProcess, identifyProcess, isAlive, type ProcessIdentity } from './process-table.js';
import { QuotaFile } from './quota.js';
import { sendRefusal } from './refusal.js';
import { RefusalLog } from './refusal-log.js';
import type { Session } from './session.js';
import { SessionFiles } from './session-files.js';
import { readSpecification } from './specification.js';
import { StartAllowance } from './start-allowance.js';
import { SPECIFICATION } from './state-directory.js';
import type { WarmWorker } from './warm-workers.js';
import { FoundWorker, startWorker, type Worker, type WorkerListener, type WorkerOptions, workerArguments } from './worker.js';
import { WorkerLog } from './worker-log.js';

/** What a node gives to each of its allocations. */
export interface AllocationHost {
  readonly installation: Installation;
  readonly launcher: Launcher;
  readonly backend: Backend;
  readonly addon: Addon;
  readonly logger: Logger;
  /** Whether each allocation has a driver's cache of its own, or its workers use this user's. */
  readonly ownCaches: boolean;
  /** Where workers ask for GPU time; undefined: they take it. */
  readonly arbiterSocket: string | undefined;
  /** Bytes that it costs on the greediest of these GPUs. */
  cost(what: DriverMemory, gpus: readonly string[]): number;
  /** Whether a worker of it may start now: in concurrent mode not while MPS is away. */
  mayStart(specification: AllocationSpecification): boolean;
  /** How its workers run under MPS; undefined: they do not. */
  mpsClient(specification: AllocationSpecification): MpsClient | undefined;
  /** Undefined when the process at the other end may use the allocation, else why not. */
  whyNotAllowed(allocation: AllocationSpecification, connection: Socket): ProxyError | undefined;
  /** A worker that has a context ready on exactly these GPUs. */
  takeWarmWorker(gpus: readonly string[]): WarmWorker | undefined;
  /** What the user of an allocation should know. */
  trouble(allocation: AllocationSpecification, error: ProxyError): void;
  sessionStarted(session: LiveSession): void;
  sessionEnded(session: Session, last: LastFigures): void;
}

/** What a session's files said last. */
export interface LastFigures {
  readonly use: SessionUse;
  readonly roundTrips: readonly number[];
}

/** A connection that waits for its turn to get a worker. */
interface Waiting {
  readonly connection: Socket;
  readonly peer: PeerCredentials;
}

const HOLDER = 'holder.json';
/** All that an allocation is made of beside its specification and its socket. */
const PARTS = ['cache', 'sessions', 'quota'] as const;

interface Start {
  readonly record: SessionRecord;
  readonly connection: Socket;
  readonly files: SessionFiles;
  readonly listener: WorkerListener;
}

/** What an earlier proxy left of a session. */
interface FoundSession {
  readonly files: SessionFiles;
  readonly record: SessionRecord | undefined;
  readonly worker: ProcessIdentity | undefined;
  readonly lives: boolean;
}

/** So many workers of one allocation start at one time; who connects beyond waits. A tenant cannot flood the node with processes. */
const STARTING_AT_ONCE = 16;

/**
 * What somebody was granted: a directory with its specification (the truth), its memory account, the socket of its programs, and a directory
 * for each of its sessions.
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
  readonly #starts = new StartAllowance();
  #turn: NodeJS.Immediate | undefined;
  #later: NodeJS.Timeout | undefined;
  #lastNumber: number;
  /** Once it is removed. */
  #peak: number | undefined;
  #idle: (() => void)[] = [];

  private constructor(
    directory: string,
    specification: AllocationSpecification,
    quota: QuotaFile,
    host: AllocationHost,
    socket = new ClientSocket(path.join(directory, 'client', 'gpu.sock'), () => {}),
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

  /** Makes the directory, whole or not at all. Nobody can connect before listen(). */
  static create(parent: string, specification: AllocationSpecification, host: AllocationHost, holder?: ProcessIdentity): Allocation {
    const directory = path.join(parent, specification.id);
    makeDirectoryAtomically(directory, 0o711, (unfinished) => {
      if (holder) writeFileAtomically(path.join(unfinished, HOLDER), JSON.stringify(holder));
      mkdirSync(path.join(unfinished, 'client'), { mode: 0o755 });
      makeParts(unfinished, specification);
    });
    return new Allocation(directory, specification, QuotaFile.open(path.join(directory, 'quota')), host);
  }

  /** Makes an allocation of a grant, whose directory and socket are there. The specification comes last: without it, it is still a grant. */
  static bind(directory: string, specification: AllocationSpecification, host: AllocationHost, socket: ClientSocket): Allocation {
    removeParts(directory);
    makeParts(directory, specification);
    return new Allocation(directory, specification, QuotaFile.open(path.join(directory, 'quota')), host, socket);
  }

  /** Takes over what an earlier proxy left: sessions that live go on, the others are brought to their end. @throws ProxyError */
  static load(directory: string, host: AllocationHost): Allocation {
    const specification = readSpecification(path.join(directory, SPECIFICATION));
    const allocation = new Allocation(directory, specification, openQuota(path.join(directory, 'quota')), host);
    try {
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

  /** The kubelet granted it: while its pod lives, the directory stays. */
  get granted(): boolean {
    return existsSync(path.join(this.directory, GRANT));
  }

  get id(): string {
    return this.#specification.id;
  }

  /** Programs can connect. */
  get listening(): boolean {
    return this.#socket.open;
  }

  /** Where its programs connect. */
  get socketPath(): string {
    return this.#socket.path;
  }

  /** With those that wait for a worker. */
  get sessionCount(): number {
    return this.#sessions.size + this.#waiting.length;
  }

  /** The process for which it was made, and with which it goes. */
  get holder(): ProcessIdentity | undefined {
    const text = readIfThere(path.join(this.directory, HOLDER));
    return text === undefined ? undefined : (JSON.parse(text) as ProcessIdentity);
  }

  get sessions(): LiveSession[] {
    return [...this.#sessions.values()];
  }

  /** Bytes that all sessions together have. */
  get memoryUsed(): number {
    return this.#quota.readUsed();
  }

  /** The most bytes that all sessions together had at one time. */
  get peakMemory(): number {
    return this.#peak ?? this.#quota.readPeak();
  }

  /** @param socketPath another place than its directory. @throws ProxyError when the socket cannot be made. */
  async listen(socketPath?: string): Promise<void> {
    if (socketPath !== undefined) this.#socket = new ClientSocket(socketPath, (connection) => this.accept(connection), 'elsewhere');
    await this.#socket.listen();
  }

  /** Refuses new sessions from now on, also after a restart. */
  drain(): void {
    this.#specification = { ...this.#specification, draining: true };
    writeSpecification(this.directory, this.#specification);
  }

  /** Accepts nobody any more. Sessions go on. */
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

  /** Those that wait may have a worker, for all that the node knows. */
  resume(): void {
    if (this.#waiting.length > 0) this.#takeTurns();
  }

  /** Ends every session now: the clients get an error from their next call. */
  kill(): void {
    for (const { connection } of this.#waiting.splice(0)) connection.destroy();
    for (const session of this.#sessions.values()) session.kill();
    this.#noteIdle();
  }

  /** Only when no session is left. */
  remove(): void {
    this.stopAccepting();
    this.#finish();
    removeDirectoryAtomically(this.directory);
  }

  /** Only when no session is left: it becomes the grant again that it was, and the socket is the caller's. */
  unbind(): ClientSocket {
    this.#finish();
    rmSync(path.join(this.directory, SPECIFICATION), { force: true });
    removeParts(this.directory);
    return this.#socket;
  }

  /** Everything goes on without this proxy; clients that connect meanwhile try again until there is another. */
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

  /** Takes a connection of which nothing was read yet. */
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
    sendRefusal(connection, why.message);
    this.#refusals.add(why);
    // Whoever may not connect at all is told of by the host that says so.
    if (why.code === 'SESSIONS_FULL' || why.code === 'ALLOCATION_DRAINING') this.#host.trouble(this.#specification, why);
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

  /** One worker is started in each turn of the event loop, so that no allocation holds up another. */
  #takeTurns(): void {
    if (this.#turn) return;
    this.#turn = setImmediate(() => {
      this.#turn = undefined;
      const starting = this.sessions.filter(({ session }) => !session.introduced).length;
      const may = starting < STARTING_AT_ONCE && this.#host.mayStart(this.#specification) && !this.#mustWait();
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
      const made = SessionFiles.make(path.join(this.directory, 'sessions', String(record.number)), record);
      files = made;
      this.#begin(record, made, (listener) => this.#startWorker({ record, connection, files: made, listener }));
    } catch (error) {
      if (slot !== undefined) this.#quota.releaseSlot(slot);
      this.#removeUnused(files);
      this.#noteNotStarted(connection, peer, error as Error);
      this.#noteIdle();
    }
  }

  /** No worker has them. What cannot be removed now, the next proxy removes. */
  #removeUnused(files: SessionFiles | undefined): void {
    try {
      files?.remove();
    } catch (error) {
      this.#logger.warn(`the files of a session that did not start remain for a while: ${systemReason(error)}`);
    }
  }

  #noteNotStarted(connection: Socket, { pid }: PeerCredentials, error: Error): void {
    const said = error instanceof ProxyError ? error : new ProxyError('WORKER_NOT_STARTED', { pid, reason: error.message });
    sendRefusal(connection, said.message);
    this.#logger.error(said.message);
    this.#host.trouble(this.#specification, said);
  }

  #newRecord(peer: PeerCredentials, slot: number): SessionRecord {
    const { startTime = '', program } = identifyProcess(peer.pid);
    this.#lastNumber++;
    writeFileAtomically(lastNumberFile(this.directory), String(this.#lastNumber));
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

  /** A cold one is found again by its command line; one that was warm stands in the record before it serves. */
  #startWorker({ record, connection, files, listener }: Start): Worker {
    const options = this.#workerOptions(record.slot, files);
    const warm = this.#build === undefined ? this.#host.takeWarmWorker(this.#specification.gpus) : undefined;
    try {
      if (warm) files.writeRecord({ ...record, worker: warm.identity });
      const tenant = this.#tenant(record);
      if (warm && tenant) this.#host.launcher.move(warm.identity.pid, tenant);
      if (warm) return warm.assign(options, connection, files.openForWorker(), listener);
    } catch (error) {
      this.#logger.warn(`a worker that waited could not be given a program: ${(error as Error).message}`);
      warm?.dismiss();
      if (warm) files.writeRecord(record);
    }
    const command = this.#host.launcher.command(this.#executable(), workerArguments(options), this.#tenant(record));
    return startWorker(command, connection, files.openForWorker(), listener);
  }

  #tenant({ client }: SessionRecord): Tenant | undefined {
    const { owner } = this.#specification;
    return owner && { podUid: owner.podUid, pid: client.pid };
  }

  /** Of another build than this proxy's: the one of which its container has the library. */
  get #build(): string | undefined {
    const build = readGrant(this.directory)?.build;
    return build === this.#host.installation.version ? undefined : build;
  }

  /** @throws ProxyError VERSION_MISSING */
  #executable(): string {
    return workerOf(this.#host.installation, this.#build);
  }

  #workerOptions(slot: number, files: SessionFiles): WorkerOptions {
    const { memory, gpus, limits, uid, mode } = this.#specification;
    const contextMemory = this.#host.cost('contextMemory', gpus);
    return {
      driver: this.#host.backend.driver,
      ...{ memoryLimit: memory, quotaPath: this.#quota.path, slot, gpus, limits, uid, contextMemory },
      streamMemory: this.#host.cost('streamMemory', gpus),
      heapMemory: this.#host.cost('heapMemory', gpus),
      mps: this.#host.mpsClient(this.#specification),
      // The node provides for one context of an allocation: that of the session in the first slot.
      contextCharge: slot === 0 ? 0 : contextMemory,
      arbiter: mode === 'exclusive' ? this.#host.arbiterSocket : undefined,
      figures: files.figures,
      cache: this.#host.ownCaches ? path.join(this.directory, 'cache') : undefined,
    };
  }

  #begin(record: SessionRecord, files: SessionFiles, worker: (listener: WorkerListener) => Worker): void {
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
    // Counted before its files go: a proxy that is killed in between leaves them to the next one, which knows it by its number.
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
    const found = readdirSync(parent).map((name) => this.#find(new SessionFiles(path.join(parent, name))));
    // A slot is of one worker: one that lives comes before what a dead one left behind.
    for (const one of [...found.filter(({ lives }) => lives), ...found.filter(({ lives }) => !lives)]) this.#takeOver(one);
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
 * A record without a pid was written by a proxy that was killed while it started the worker. Then the worker has the figures of this very
 * session; its slot it may have from one that went before.
 */
function findWorker({ worker }: SessionRecord, { figures }: SessionFiles): ProcessIdentity | undefined {
  return worker.pid > 0 ? { ...worker, program: '' } : findProcess('--figures', figures);
}

function makeParts(directory: string, specification: AllocationSpecification): void {
  mkdirSync(path.join(directory, 'cache'), { mode: 0o700 });
  mkdirSync(path.join(directory, 'sessions'), { mode: 0o700 });
  QuotaFile.create(path.join(directory, 'quota'), specification.memory).close();
  writeSpecification(directory, specification);
}

function removeParts(directory: string): void {
  for (const part of PARTS) rmSync(path.join(directory, part), { recursive: true, force: true });
}

function writeSpecification(directory: string, specification: AllocationSpecification): void {
  writeFileAtomically(path.join(directory, SPECIFICATION), `${JSON.stringify(specification, undefined, 2)}\n`, { durable: true });
}

/** Whoever connected often and ended costs no worker for each of its connections. A pid of 0 is one that cannot be seen from here. */
function hasGone({ pid }: PeerCredentials): boolean {
  return pid > 0 && !isAlive(identifyProcess(pid));
}

/** The number of the latest session, which no other may have again. */
function lastNumberFile(directory: string): string {
  return path.join(directory, 'last-session');
}

function readLastNumber(directory: string): number {
  return Number.parseInt(readIfThere(lastNumberFile(directory)) ?? '', 10) || 0;
}

function openQuota(file: string): QuotaFile {
  try {
    return QuotaFile.open(file);
  } catch (error) {
    throw new ProxyError('SPECIFICATION_BROKEN', { file, reason: (error as Error).message });
  }
}
