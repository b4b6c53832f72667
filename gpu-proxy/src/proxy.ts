import { chmodSync, mkdirSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';
import type { Logger } from 'pino';
import { Addon } from './addon.js';
import type { Backend } from './backend.js';
import { ProxyError, systemReason } from './errors.js';
import type { Installation } from './installation.js';
import { makePrivateDirectory, removePrivateDirectory } from './private-directory.js';
import { identifyProcess, isAlive } from './process-table.js';
import { MAX_SESSIONS, QuotaFile } from './quota.js';
import { parseReport, Session, type WorkerExit } from './session.js';
import { checkSocketPath, clearStaleSocket } from './socket.js';
import { Worker } from './worker.js';

export interface ProxyOptions {
  readonly installation: Installation;
  readonly backend: Backend;
  readonly gpus: readonly string[];
  /** Bytes over all sessions; 0: none. */
  readonly memoryLimit: number;
  readonly logger: Logger;
  /** By default a socket in the proxy's private directory. */
  readonly socketPath?: string | undefined;
}

interface Served {
  readonly session: Session;
  readonly worker: Worker;
  /** When the client was first seen gone. */
  goneSince?: number;
}

const SUPERVISION_MS = 1000;
/** A worker ends by itself when its client does; one that has not after this long is stuck and is killed. */
const ORPHAN_GRACE_MS = 10_000;

/** Accepts clients, finds out who they are, and gives each a worker. It is never on the path of a call. */
export class GpuProxy {
  readonly socketPath: string;
  /** Every session that ended, oldest first. */
  readonly ended: Session[] = [];
  readonly #options: ProxyOptions;
  readonly #directory: string;
  readonly #quota: QuotaFile;
  readonly #addon: Addon;
  readonly #server: Server;
  readonly #served = new Set<Served>();
  readonly #supervision: NodeJS.Timeout;
  #accepted = 0;
  #idle: (() => void)[] = [];

  private constructor(options: ProxyOptions) {
    this.#options = options;
    this.#addon = new Addon(options.installation.addon);
    this.#directory = makePrivateDirectory();
    this.socketPath = options.socketPath ?? path.join(this.#directory, 'gpu.sock');
    this.#quota = new QuotaFile(path.join(this.#directory, 'quota'), options.memoryLimit);
    this.#server = createServer({ pauseOnConnect: true }, (connection) => this.#accept(connection));
    this.#supervision = setInterval(() => this.#endOrphans(), SUPERVISION_MS).unref();
  }

  /** A proxy that listens. @throws ProxyError when its socket cannot be made; nothing is left behind then. */
  static async start(options: ProxyOptions): Promise<GpuProxy> {
    const proxy = new GpuProxy(options);
    try {
      await proxy.#listen();
      return proxy;
    } catch (error) {
      proxy.#discard();
      throw error;
    }
  }

  /** The most memory that all sessions together had at one time. */
  get peakMemory(): number {
    return this.#quota.readPeak();
  }

  get sessionsServed(): number {
    return this.#served.size;
  }

  /** Accepts nobody any more. Sessions go on. */
  stopAccepting(): void {
    this.#server.close();
  }

  /** Resolves when no session is left. */
  whenIdle(): Promise<void> {
    if (this.#served.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Ends every session now: the clients get an error from their next call. */
  killWorkers(): void {
    for (const { worker } of this.#served) worker.kill();
  }

  /** Waits for the sessions, then removes all that this proxy made. */
  async close(): Promise<void> {
    this.stopAccepting();
    await this.whenIdle();
    this.#discard();
  }

  async #listen(): Promise<void> {
    checkSocketPath(this.socketPath);
    try {
      mkdirSync(path.dirname(this.socketPath), { recursive: true });
      await clearStaleSocket(this.socketPath);
      await new Promise<void>((resolve, reject) => this.#server.once('error', reject).listen(this.socketPath, resolve));
      chmodSync(this.socketPath, 0o600);
    } catch (error) {
      if (error instanceof ProxyError) throw error;
      throw new ProxyError('SOCKET_NOT_MADE', { path: this.socketPath, reason: systemReason(error) });
    }
  }

  #discard(): void {
    clearInterval(this.#supervision);
    this.#server.close();
    this.#quota.remove();
    removePrivateDirectory(this.#directory);
  }

  #accept(connection: Socket): void {
    try {
      this.#serve(connection);
    } catch (error) {
      connection.destroy();
      this.#options.logger.error({ error: (error as Error).message }, (error as Error).message);
    }
  }

  #serve(connection: Socket): void {
    const { installation, backend, gpus, memoryLimit, logger } = this.#options;
    const peer = this.#addon.peerCredentials(connection);
    const slot = this.#quota.takeSlot();
    if (slot === undefined) throw new ProxyError('SESSIONS_FULL', { pid: peer.pid, limit: MAX_SESSIONS });
    const session = new Session(++this.#accepted, peer, identifyProcess(peer.pid), backend, logger);
    const options = { executable: installation.worker, driver: backend.driver, memoryLimit, quotaPath: this.#quota.path, slot, gpus };
    const worker = new Worker(options, connection, {
      report: (line) => this.#takeReport(session, line),
      log: (line) => logger.warn({ session: session.number, pid: peer.pid }, line),
      failed: (error) => {
        logger.error(new ProxyError('WORKER_NOT_STARTED', { pid: peer.pid, reason: systemReason(error) }).message);
        this.#end(served, slot, { status: null, signal: null });
      },
      exited: (exit) => this.#end(served, slot, exit),
    });
    const served: Served = { session, worker };
    this.#served.add(served);
  }

  #takeReport(session: Session, line: string): void {
    const report = parseReport(line);
    if (report) session.apply(report);
    else this.#options.logger.warn({ session: session.number, line: line.slice(0, 200) }, 'the worker wrote a line that is no report');
  }

  #end(served: Served, slot: number, exit: WorkerExit): void {
    if (!this.#served.delete(served)) return;
    served.session.end(exit, this.#quota.readSlot(slot).peak);
    this.#quota.releaseSlot(slot);
    this.ended.push(served.session);
    if (this.#served.size > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #endOrphans(): void {
    for (const served of this.#served) {
      if (isAlive(served.session.client)) continue;
      served.goneSince ??= Date.now();
      if (Date.now() - served.goneSince < ORPHAN_GRACE_MS) continue;
      this.#options.logger.error(
        { session: served.session.number, pid: served.session.peer.pid },
        'the worker outlived its client and is killed',
      );
      served.worker.kill();
    }
  }
}
