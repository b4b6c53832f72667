import type { Socket } from 'node:net';
import type { AllocationSpecification, MemoryState, Suspender } from '@nvidia-virtual/ledger';
import { ProxyError } from '@nvidia-virtual/service/errors';
import type { ProcessIdentity } from '@nvidia-virtual/service/process-table';
import type { Logger } from 'pino';
import { Checkpoint } from '../checkpoints/checkpoint.js';
import type { PeerCredentials } from '../host/addon.js';
import type { LiveSession } from '../sessions/live-session.js';
import { AllocationDirectory } from './allocation-directory.js';
import type { AllocationHost } from './allocation-host.js';
import { AllocationSessions } from './allocation-sessions.js';
import { ClientSocket } from './client-socket.js';
import { ConnectionQueue, hasGone } from './connection-queue.js';
import { sendRefusal } from './refusal.js';
import { RefusalLog } from './refusal-log.js';
import { Relocation } from './relocation.js';
import { type SavedToo, Suspension } from './suspension.js';

/**
 * The resources that a tenant was granted on this node. Accepts clients until it is drained, and
 * ends with its last session.
 */
export class Allocation {
  readonly #host: AllocationHost;
  readonly #directory: AllocationDirectory;
  readonly #logger: Logger;
  readonly #sessions: AllocationSessions;
  readonly #queue: ConnectionQueue;
  readonly #refusals: RefusalLog;
  readonly #suspension: Suspension;
  readonly #relocation: Relocation;
  readonly #checkpoint: Checkpoint;
  /** The reason why its pod's annotation has no effect yet, as a sentence; undefined: it has. */
  suspensionRefused: string | undefined;
  #socket: ClientSocket;
  readonly #idle: (() => void)[] = [];

  private constructor(
    directory: AllocationDirectory,
    host: AllocationHost,
    socket = new ClientSocket(directory.socket, host.closer, () => {}),
  ) {
    this.#directory = directory;
    this.#host = host;
    const { id, name } = directory.specification;
    this.#logger = host.logger.child({ allocation: id, name });
    this.#refusals = new RefusalLog(this.#logger);
    this.#sessions = new AllocationSessions({
      ...{ host, directory, logger: this.#logger },
      resident: () => this.state === 'resident',
      introduced: (live) => this.#noteIntroduced(live),
      ended: () => this.#noteEnd(),
    });
    this.#queue = new ConnectionQueue({
      starting: () => this.sessions.filter(({ session }) => !session.introduced).length,
      // NVML of a container connects for the allocation only, and sends nothing.
      gone: ({ connection, peer }) => hasGone(peer) || host.addon.peerSendsNoMore(connection),
      mayStart: () => !this.#suspension.holds && host.mayStart(this.specification),
      start: (next) => this.#sessions.start(next),
      dropped: () => this.#noteIdle(),
    });
    this.#suspension = new Suspension({
      ...{ directory, host, logger: this.#logger },
      sessions: () => this.sessions,
      resumed: () => this.resume(),
    });
    this.#relocation = new Relocation({
      ...{ directory, logger: this.#logger, suspension: this.#suspension },
      sessions: () => this.sessions,
      placed: () => host.placed(this.specification),
    });
    this.#checkpoint = new Checkpoint({
      ...{ directory, host, logger: this.#logger, suspension: this.#suspension },
      sessions: () => this.sessions,
      resume: () => this.unsuspend('node', { checkpoint: undefined }),
    });
    this.#socket = socket;
    socket.accept = (connection) => this.accept(connection);
  }

  /** Creates the directory atomically. Clients cannot connect until listen(). */
  static create(
    parent: string,
    specification: AllocationSpecification,
    host: AllocationHost,
    holder?: ProcessIdentity,
  ): Allocation {
    return new Allocation(AllocationDirectory.create(parent, specification, holder), host);
  }

  /** Turns a grant, whose directory and socket exist, into an allocation. */
  static bind(
    directory: string,
    specification: AllocationSpecification,
    host: AllocationHost,
    socket: ClientSocket,
  ): Allocation {
    return new Allocation(AllocationDirectory.bind(directory, specification), host, socket);
  }

  /**
   * Takes over the allocation of an earlier gpu-proxy. Live sessions continue; dead ones are
   * removed. @throws ProxyError
   */
  static load(directory: string, host: AllocationHost): Allocation {
    const allocation = new Allocation(AllocationDirectory.open(directory), host);
    try {
      allocation.#sessions.takeOver();
      allocation.#relocation.takeOver();
      allocation.#checkpoint.takeOver();
    } catch (error) {
      allocation.leave();
      throw error;
    }
    return allocation;
  }

  get specification(): AllocationSpecification {
    return this.#directory.specification;
  }

  get id(): string {
    return this.specification.id;
  }

  get directory(): string {
    return this.#directory.path;
  }

  /** True if the kubelet granted it. The directory then stays for the life of its pod. */
  get granted(): boolean {
    return this.#directory.granted;
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
    return this.#sessions.count + this.#queue.length;
  }

  /** The process for which it was created; the allocation ends with it. */
  get holder(): ProcessIdentity | undefined {
    return this.#directory.holder;
  }

  get sessions(): LiveSession[] {
    return this.#sessions.all;
  }

  /** The directories that its workers write to. */
  get written(): string[] {
    return this.#directory.written;
  }

  /** Empties what workers write to. Requires that no session is left. */
  emptyWritten(): void {
    this.#directory.emptyWritten();
  }

  /** Bytes in use by all sessions together. */
  get memoryUsed(): number {
    return this.#sessions.memoryUsed;
  }

  /** Peak of memoryUsed, in bytes. */
  get peakMemory(): number {
    return this.#sessions.peakMemory;
  }

  /** Where its memory is. */
  get state(): MemoryState {
    return this.#suspension.state;
  }

  /** The part of memoryUsed that is in host memory. */
  get outBytes(): number {
    return this.#suspension.outBytes;
  }

  /**
   * Bytes that it may have on a GPU, beside its quota: fewer while it is suspended. The workers
   * write how much is used.
   */
  get here(): number {
    const { suspended, memory } = this.specification;
    if (!suspended) return Number.POSITIVE_INFINITY;
    return Math.max(0, Math.min(this.memoryUsed, memory) - this.outBytes);
  }

  /** Lets the user of the workers write to their directories. */
  giveDirectories(): void {
    this.#directory.giveToWorkers();
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
    this.#directory.save({ ...this.specification, draining: true });
  }

  /**
   * Takes GPU time and memory from its sessions, also after a restart; see Suspension.
   * @returns false if it was suspended. @throws ProxyError
   */
  suspend(by: Suspender): Promise<boolean> {
    return this.#suspension.suspend(by);
  }

  /**
   * Gives both back; on an oversubscribed GPU when its policy resumes it.
   * @param also is saved with that
   * @returns false if it was not suspended, or if another one suspends it too
   * @throws ProxyError MEMORY_NOT_BACK; it stays suspended
   */
  async unsuspend(by: Suspender, also?: SavedToo): Promise<boolean> {
    const { suspendedBy = [] } = this.specification;
    const isOther = by !== 'policy' && suspendedBy.includes(by);
    if (isOther && this.#host.isOversubscribed(this.specification))
      await this.#suspension.suspend('policy');
    return this.#suspension.resume(by, also);
  }

  /** The latest event of its pod says whether it is suspended. */
  noteTold(suspended: boolean): void {
    const toldSuspended = suspended || undefined;
    if (toldSuspended !== this.specification.toldSuspended)
      this.#directory.save({ ...this.specification, toldSuspended });
  }

  /** Moves its sessions to another GPU; see Relocation. @throws ProxyError */
  move(gpu: string): Promise<void> {
    return this.#relocation.move(gpu);
  }

  /**
   * Writes its sessions to files in a directory, which must not exist; see Checkpoint.
   * @param key undefined: this node makes one, and keeps it
   * @throws ProxyError
   */
  checkpoint(directory: string, key: Buffer | undefined): Promise<void> {
    return this.#checkpoint.write(directory, key);
  }

  /**
   * Makes its sessions again from their files.
   * @param key undefined: the one that this node has
   * @throws ProxyError
   */
  restore(key: Buffer | undefined): Promise<void> {
    return this.#checkpoint.read(key);
  }

  /** The policy suspends it, and a part of its memory leaves; see Suspension. @throws ProxyError */
  evict(bytes: number): Promise<number> {
    return this.#suspension.evict(bytes);
  }

  /** A part of its memory comes back, and it stays suspended. @throws ProxyError */
  enter(bytes: number): Promise<number> {
    return this.#suspension.enter(bytes);
  }

  /** Whether the policy of an oversubscribed GPU suspends it. */
  get evicted(): boolean {
    return this.specification.suspendedBy?.includes('policy') === true;
  }

  /** Whether anyone else suspends it. */
  get suspended(): boolean {
    const { suspended = false, suspendedBy } = this.specification;
    return suspendedBy ? suspendedBy.some((by) => by !== 'policy') : suspended;
  }

  /** Whether a program waits for the allocation to be resumed. */
  get waits(): boolean {
    return this.#queue.waits || this.sessions.some(({ figures }) => figures.waiting > 0);
  }

  /** Accepts no more connections and drops queued ones. Sessions continue. */
  stopAccepting(): void {
    this.#socket.close();
    this.#queue.drop();
    this.#noteIdle();
  }

  /** Resolves when no session is left. */
  whenIdle(): Promise<void> {
    if (this.sessionCount === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Retries queued connections. Called when the node may have room for their workers. */
  resume(): void {
    this.#queue.resume();
  }

  /** Kills every session. The next CUDA call of each client fails. */
  kill(): void {
    this.#queue.drop();
    this.#sessions.kill();
    this.#noteIdle();
  }

  /** Requires that no session is left. */
  remove(): void {
    this.stopAccepting();
    this.#finish();
    this.#directory.remove();
  }

  /**
   * Turns the allocation back into a grant and returns its socket to the caller. Requires that no
   * session is left.
   */
  unbind(): ClientSocket {
    this.#finish();
    this.#directory.unbind();
    return this.#socket;
  }

  /**
   * Detaches this gpu-proxy; sessions continue. Clients that connect meanwhile retry until the next
   * gpu-proxy listens.
   */
  leave(): void {
    this.#socket.leave();
    this.#queue.drop();
    this.#suspension.end();
    this.#relocation.end();
    this.#checkpoint.leave();
    this.#refusals.end();
    this.#sessions.leave();
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
      if (why) this.#refuse(connection, why);
      else this.#queue.add({ connection, peer });
    } catch (error) {
      connection.destroy();
      this.#logger.error((error as Error).message);
    }
  }

  #refuse(connection: Socket, why: ProxyError): void {
    sendRefusal(this.#host.closer, connection, why);
    this.#refusals.add(why);
    // whyNotAllowed() reports its own refusals.
    if (why.code === 'SESSIONS_FULL' || why.code === 'ALLOCATION_DRAINING')
      this.#host.trouble(this.specification, why);
  }

  #whyRefused(connection: Socket, { pid }: PeerCredentials): ProxyError | undefined {
    const { draining, limits } = this.specification;
    const values = { pid, id: this.id, limit: limits.sessions };
    if (draining) return new ProxyError('ALLOCATION_DRAINING', values);
    if (this.sessionCount >= limits.sessions) return new ProxyError('SESSIONS_FULL', values);
    return this.#host.whyNotAllowed(this.specification, connection);
  }

  #noteIntroduced(live: LiveSession): void {
    this.#suspension.noteIntroduced(live);
    this.#relocation.noteIntroduced(live);
    if (live.session.gpu) this.#queue.noteSession();
    this.#queue.resume();
  }

  #noteEnd(): void {
    this.#queue.resume();
    this.#noteIdle();
  }

  #noteIdle(): void {
    if (this.sessionCount > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  #finish(): void {
    this.#suspension.end();
    this.#relocation.end();
    this.#checkpoint.end();
    this.#refusals.end();
    this.#sessions.end();
  }
}
