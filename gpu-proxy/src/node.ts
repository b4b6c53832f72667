import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { chownSync, existsSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import type {
  AllocationSpecification,
  DriverMemory,
  GpuRecord,
  Limits,
  NodeSnapshot,
  Owner,
  SharingMode,
  TimeUse,
} from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import { Addon } from './addon.js';
import { Admission, type GpuWish, type Granted } from './admission.js';
import { Allocation, type AllocationHost, type LastFigures } from './allocation.js';
import { Arbiter, type ArbiterTable } from './arbiter.js';
import type { Backend } from './backend.js';
import type { ClientSocket } from './client-socket.js';
import { ConcurrentGpus } from './concurrent-gpus.js';
import { counted } from './counted.js';
import { ProxyError, systemReason } from './errors.js';
import type { Installation } from './installation.js';
import { DIRECT, type Launcher } from './launcher.js';
import type { LiveSession } from './live-session.js';
import type { ProcessIdentity } from './process-table.js';
import type { Session } from './session.js';
import { checkWishes, DEFAULT_LIMITS, DEFAULT_WINDOW, readPromised, type Wishes } from './specification.js';
import { SPECIFICATION, type StateDirectory } from './state-directory.js';
import { type WarmWorker, WarmWorkers } from './warm-workers.js';

/** What may change while a node runs. */
export interface NodeSettings {
  /** Of allocations that are made from now on and ask for nothing else. */
  readonly limits: Limits;
  /** How many workers wait for a program on a GPU; each holds a context. */
  warmWorkers(gpu: GpuRecord): number;
  /** Microseconds that one allocation has a GPU when others wait. */
  readonly window: number;
  /** Users for workers, one for each allocation; by default they run as the node does. */
  readonly users?: { readonly first: number; readonly last: number } | undefined;
}

export interface NodeOptions {
  readonly installation: Installation;
  /** How processes are started that outlive the node's; by default as its children. */
  readonly launcher?: Launcher | undefined;
  readonly backend: Backend;
  readonly logger: Logger;
  readonly state: StateDirectory;
  /** The inventory. Empty when nobody took it: then allocations get what they ask for, unseen. */
  readonly gpus: readonly GpuRecord[];
  readonly name?: string | undefined;
  readonly settings?: Partial<NodeSettings> | undefined;
  /** Whether the GPUs' time is shared out; one allocation alone needs nobody for it unless it is to have less than all. */
  readonly arbitrated: boolean;
  /** Why the process at the other end may not use an allocation. By default, whoever reaches its socket may. */
  readonly whyNotAllowed?: AllocationHost['whyNotAllowed'] | undefined;
  /** Is given the node before anything happens on it, so as to miss no event. */
  observe?(node: GpuNode): void;
}

/** What somebody asks for. */
export interface AllocationRequest extends Wishes {
  /** Indices or UUIDs; empty: the node chooses one. */
  readonly gpus?: readonly string[] | undefined;
  /** Bytes on each GPU; 0: all that is left. */
  readonly memory?: number | undefined;
  /** It is drained when this process has ended. */
  readonly holder?: ProcessIdentity | undefined;
  /** Where its programs connect, if not in its directory. */
  readonly socketPath?: string | undefined;
  readonly owner?: Owner | undefined;
  /** The grant that it is made of. */
  readonly grant?: BindableGrant | undefined;
}

/** A grant that is served, and becomes an allocation. */
export interface BindableGrant {
  readonly id: string;
  readonly slots: readonly string[];
  readonly socket: ClientSocket;
}

export interface EndedSession extends LastFigures {
  readonly session: Session;
}

interface NodeEvents {
  /** An allocation or a session came, went or became another. */
  changed: [];
  /** With a worker that waited, or with one that was started for it; not when it is found again. */
  sessionStarted: [worker: 'warm' | 'cold'];
  sessionEnded: [EndedSession];
  arbiterRestarted: [];
  mpsRestarted: [];
  /** Something went wrong that the user of an allocation should know. */
  trouble: [allocation: AllocationSpecification, error: ProxyError];
  /** What was an allocation is a grant again, whose socket nobody serves now. */
  unbound: [id: string, socket: ClientSocket];
}

const NO_TIME: TimeUse = { granted: 0, waited: 0, overrun: 0, windows: 0 };

/**
 * Owns the GPUs of one machine: grants allocations, lets programs connect to them, and takes over what an earlier proxy left in the state
 * directory. It is never on the path of a call.
 */
export class GpuNode extends EventEmitter<NodeEvents> {
  readonly name: string;
  readonly gpus: readonly GpuRecord[];
  readonly #options: NodeOptions;
  readonly #admission: Admission;
  readonly #host: AllocationHost;
  readonly #allocations = new Map<string, Allocation>();
  /** What cannot be served, by the files of their specifications: it still takes its part of the GPUs. */
  readonly #leftAlone = new Map<string, AllocationSpecification>();
  readonly #unwatchHolders = new Map<string, () => void>();
  readonly #warmWorkers = new Map<GpuRecord, WarmWorkers>();
  #arbiter: Arbiter | undefined;
  #concurrent: ConcurrentGpus | undefined;
  #settings: NodeSettings;

  private constructor(options: NodeOptions) {
    super();
    this.#options = options;
    this.name = options.name ?? hostname();
    this.gpus = options.gpus;
    this.#settings = { limits: DEFAULT_LIMITS, window: DEFAULT_WINDOW, warmWorkers: () => 0, ...options.settings };
    this.#admission = new Admission(options.gpus, (gpu) => this.warmWorkers(gpu));
    const addon = new Addon(options.installation.addon);
    this.#host = {
      installation: options.installation,
      launcher: options.launcher ?? DIRECT,
      backend: options.backend,
      logger: options.logger,
      addon,
      // What a temporary node compiled would be lost with it.
      ownCaches: !options.state.temporary,
      cost: (what, gpus) => this.#cost(what, gpus),
      mayStart: (specification) => !this.#needsMps(specification) || (this.#concurrent?.ready(specification.gpus) ?? false),
      mpsClient: (specification) => this.#concurrent?.clientOf(specification, this.#cost('contextMemory', specification.gpus)),
      arbiterSocket: options.arbitrated ? options.state.arbiterSocket : undefined,
      whyNotAllowed: options.whyNotAllowed ?? (() => undefined),
      takeWarmWorker: (gpus) => this.#takeWarmWorker(gpus),
      trouble: (allocation, error) => this.emit('trouble', allocation, error),
      sessionStarted: (session) => this.#noteStart(session),
      sessionEnded: (session, last) => this.#noteEnd(session, last),
    };
  }

  /** A node that serves: what was left in the state directory is found again, and goes on. @throws ProxyError WARM_WORKERS_NOT_LEFT, MPS_MISSING */
  static async start(options: NodeOptions): Promise<GpuNode> {
    const node = new GpuNode(options);
    options.observe?.(node);
    for (const id of options.state.allocationIds()) await node.#takeOver(id);
    try {
      node.#admission.checkWarmWorkers(node.promised);
      node.#startMps();
    } catch (error) {
      node.leave();
      throw error;
    }
    node.#startHelpers();
    return node;
  }

  get allocations(): Allocation[] {
    return [...this.#allocations.values()];
  }

  /** What takes its part of the GPUs: allocations, and those that are left alone, until somebody removes them. */
  get promised(): AllocationSpecification[] {
    const leftAlone = [...this.#leftAlone].filter(([file]) => existsSync(file)).map(([, specification]) => specification);
    return [...this.allocations.map(({ specification }) => specification), ...leftAlone];
  }

  /** @throws ProxyError WARM_WORKERS_NOT_LEFT; then what was before holds. */
  set settings(settings: NodeSettings) {
    new Admission(this.gpus, (gpu) => this.warmWorkers(gpu, settings)).checkWarmWorkers(this.promised);
    this.#settings = settings;
    for (const [gpu, workers] of this.#warmWorkers) workers.wanted = this.warmWorkers(gpu);
    if (this.#arbiter) this.#arbiter.window = settings.window;
  }

  /** @throws ProxyError when it does not fit, with the figures. Who asks first is first: between question and grant nothing can happen. */
  async create(request: AllocationRequest): Promise<Allocation> {
    const allocation = this.#make(this.#specify(request), request);
    this.#allocations.set(allocation.id, allocation);
    try {
      this.#giveCache(allocation);
      if (!request.grant) await allocation.listen(request.socketPath);
    } catch (error) {
      this.#remove(allocation);
      throw error;
    }
    this.#options.logger.info({ ...named(allocation), ...allocation.specification, id: undefined }, 'allocation made');
    this.#arbitrate(allocation);
    this.#watchHolder(allocation);
    this.emit('changed');
    return allocation;
  }

  /** @throws ProxyError ALLOCATION_UNKNOWN, ALLOCATION_AMBIGUOUS */
  find(idOrName: string): Allocation {
    const byId = this.#allocations.get(idOrName);
    if (byId) return byId;
    const [found, ...others] = this.allocations.filter(({ specification }) => specification.name === idOrName);
    if (!found) throw new ProxyError('ALLOCATION_UNKNOWN', { name: idOrName });
    if (others.length === 0) return found;
    const ids = [found, ...others].map(({ id }) => id).join(', ');
    throw new ProxyError('ALLOCATION_AMBIGUOUS', { name: idOrName, allocations: counted(others.length + 1, 'allocation'), ids });
  }

  /** No new sessions; it is gone with its last one. */
  drain(allocation: Allocation): void {
    allocation.drain();
    this.#options.logger.info({ ...named(allocation), sessions: allocation.sessionCount }, 'allocation is drained');
    this.#removeWhenDrained(allocation);
    this.emit('changed');
  }

  /** @throws ProxyError ALLOCATION_IN_USE while it has sessions, unless they are to end with it. */
  async delete(allocation: Allocation, { force }: { force: boolean }): Promise<void> {
    const sessions = allocation.sessionCount;
    if (sessions > 0 && !force) throw new ProxyError('ALLOCATION_IN_USE', { id: allocation.id, sessions: counted(sessions, 'session') });
    if (!allocation.specification.draining) allocation.drain();
    allocation.kill();
    await allocation.whenIdle();
    this.#remove(allocation);
  }

  /** Ends its sessions and removes all of it: for one whose pod is gone, so that nobody needs the grant any more. */
  async release(allocation: Allocation): Promise<void> {
    if (!allocation.specification.draining) allocation.drain();
    allocation.kill();
    await allocation.whenIdle();
    this.#takeAway(allocation, () => allocation.remove());
  }

  /** What a new allocation would get. @throws ProxyError when it does not fit, with the figures. */
  admit(wish: GpuWish): Granted {
    return this.#admission.admit(wish, this.promised);
  }

  /** Everything that the ledger and the metrics want to know. */
  snapshot(): NodeSnapshot {
    const allocations = this.allocations.map((allocation) => ({
      specification: allocation.specification,
      time: this.timeOf(allocation),
      sessions: allocation.sessions.map((live) => ({ record: live.session.record, use: live.use })),
    }));
    return { node: this.name, gpus: this.gpus, allocations };
  }

  get settings(): NodeSettings {
    return this.#settings;
  }

  /** Bytes that an allocation could get on a GPU, percent that a fixed one could, and workers that could serve a program now. */
  left(gpu: GpuRecord): { memory: number; fixedShare: number; warmWorkersReady: number } {
    const present = this.promised;
    const [memory, fixedShare] = [this.#admission.memoryLeft(gpu, present), this.#admission.fixedShareLeft(gpu, present)];
    return { memory, fixedShare, warmWorkersReady: this.#warmWorkers.get(gpu)?.ready ?? 0 };
  }

  /** Asks for what changes without an event: GPU time. */
  async refresh(): Promise<void> {
    await this.#arbiter?.refresh();
  }

  /** GPU time that it got so far, as of the latest refresh(). */
  timeOf({ id }: Allocation): TimeUse {
    return this.#arbiter?.timeOf(id) ?? NO_TIME;
  }

  /** GPU time is shared out as it should be. */
  get arbiterConnected(): boolean {
    return this.#arbiter?.connected ?? !this.#options.arbitrated;
  }

  /** Why programs of GPUs in concurrent mode have to wait; undefined when none has to. */
  get mpsTrouble(): string | undefined {
    return this.#concurrent?.trouble;
  }

  /** How many workers wait for a program; none under MPS, whose limits a worker has from its start. */
  warmWorkers(gpu: GpuRecord, settings = this.#settings): number {
    return gpu.mode === 'exclusive' ? settings.warmWorkers(gpu) : 0;
  }

  /** Ends; programs go on, and the next node on this state directory finds them. */
  leave(): void {
    this.#arbiter?.leave();
    const used = this.allocations.filter(({ sessionCount }) => sessionCount > 0).map(({ specification }) => specification);
    this.#concurrent?.leave(new Set([...used, ...this.#leftAlone.values()].flatMap(({ gpus }) => gpus)));
    for (const workers of this.#warmWorkers.values()) workers.end();
    for (const allocation of this.#allocations.values()) allocation.leave();
    for (const unwatch of this.#unwatchHolders.values()) unwatch();
    this.#allocations.clear();
    this.#options.state.release();
  }

  /** Waits for the sessions, then removes every allocation. */
  async close(): Promise<void> {
    for (const allocation of this.#allocations.values()) allocation.stopAccepting();
    await Promise.all(this.allocations.map((allocation) => allocation.whenIdle()));
    for (const allocation of this.#allocations.values()) this.#remove(allocation);
    for (const workers of this.#warmWorkers.values()) workers.end();
    this.#concurrent?.leave(new Set());
    await this.#arbiter?.end();
    this.#options.state.release();
  }

  #specify(request: AllocationRequest): AllocationSpecification {
    const { limits, ...wishes } = checkWishes({ ...request, limits: { ...this.#settings.limits, ...request.limits } });
    const wish = { ...wishes, gpus: request.gpus ?? [], memory: request.memory ?? 0 };
    const granted = this.gpus.length > 0 ? this.#admission.admit(wish, this.promised) : wish;
    return {
      version: 1,
      id: request.grant?.id ?? randomBytes(8).toString('hex'),
      name: request.name,
      gpus: granted.gpus,
      memory: granted.memory,
      ...wishes,
      limits,
      uid: wishes.mode === 'concurrent' ? this.#concurrentUser : (request.uid ?? this.#freeUser()),
      createdAt: new Date().toISOString(),
      draining: false,
      owner: request.owner,
      slots: request.grant?.slots,
    };
  }

  /** MPS serves one user at a time, so all allocations in this mode have the same: the last one of the range. */
  get #concurrentUser(): number | undefined {
    return this.#settings.users?.last;
  }

  #make(specification: AllocationSpecification, { grant, holder }: AllocationRequest): Allocation {
    const parent = this.#options.state.allocations;
    if (grant) return Allocation.bind(path.join(parent, grant.id), specification, this.#host, grant.socket);
    return Allocation.create(parent, specification, this.#host, holder);
  }

  #freeUser(): number | undefined {
    const { users } = this.#settings;
    if (!users) return undefined;
    const taken = new Set(this.promised.map(({ uid }) => uid));
    if (this.gpus.some(({ mode }) => mode === 'concurrent')) taken.add(this.#concurrentUser);
    for (let uid = users.first; uid <= users.last; uid++) if (!taken.has(uid)) return uid;
    throw new ProxyError('USERS_FULL', { count: users.last - users.first + 1 });
  }

  /** The driver's cache is what its workers write to. */
  #giveCache({ directory, specification: { uid } }: Allocation): void {
    if (uid !== undefined) chownSync(path.join(directory, 'cache'), uid, uid);
  }

  /** What cannot be read is said and left alone: another proxy may know better. */
  async #takeOver(id: string): Promise<void> {
    const { state, logger } = this.#options;
    try {
      const allocation = Allocation.load(path.join(state.allocations, id), this.#host);
      this.#allocations.set(id, allocation);
      await allocation.listen();
      logger.info({ ...named(allocation), sessions: allocation.sessionCount }, 'allocation found again');
      if (allocation.specification.draining) this.#removeWhenDrained(allocation);
      else this.#watchHolder(allocation);
    } catch (error) {
      this.#leaveAlone(id, error as Error);
    }
  }

  #leaveAlone(id: string, error: Error): void {
    const file = path.join(this.#options.state.allocations, id, SPECIFICATION);
    const specification = this.#allocations.get(id)?.specification ?? readPromised(file);
    if (specification && !this.#allocations.has(id)) this.#leftAlone.set(file, specification);
    const reason = error instanceof ProxyError ? error.message : `${systemReason(error)}.`;
    const promised = specification
      ? 'its memory stays promised to it until its directory is removed'
      : 'its memory is not counted, since nobody can tell how much it is';
    this.#options.logger.error({ allocation: id }, new ProxyError('ALLOCATION_NOT_SERVED', { id, reason, promised }).message);
  }

  #watchHolder(allocation: Allocation): void {
    const { holder } = allocation;
    if (!holder) return;
    const unwatch = this.#host.addon.watchProcess({ pid: holder.pid, startTime: holder.startTime ?? '' }, () =>
      this.#noteHolderGone(allocation),
    );
    this.#unwatchHolders.set(allocation.id, unwatch);
  }

  #noteHolderGone(allocation: Allocation): void {
    try {
      this.drain(allocation);
    } catch (error) {
      const reason = systemReason(error);
      this.#options.logger.error(
        named(allocation),
        `That the allocation is drained, whose holder ended, could not be written down: ${reason}.`,
      );
      this.#removeWhenDrained(allocation);
    }
  }

  #removeWhenDrained(allocation: Allocation): void {
    allocation
      .whenIdle()
      .then(() => this.#remove(allocation))
      .catch((error) =>
        this.#options.logger.error(
          named(allocation),
          `What is left of the drained allocation could not be removed: ${systemReason(error)}.`,
        ),
      );
  }

  /** One that the kubelet granted is a grant again: its container may start once more, and needs the directory. */
  #remove(allocation: Allocation): void {
    this.#takeAway(allocation, () => {
      if (allocation.granted) this.emit('unbound', allocation.id, allocation.unbind());
      else allocation.remove();
    });
  }

  /** Nothing happens to one that was taken away before. */
  #takeAway(allocation: Allocation, removeFiles: () => void): void {
    if (!this.#allocations.delete(allocation.id)) return;
    this.#unwatchHolders.get(allocation.id)?.();
    this.#unwatchHolders.delete(allocation.id);
    this.#arbiter?.remove(allocation.id);
    removeFiles();
    this.#options.logger.info({ ...named(allocation), peakMemory: allocation.peakMemory }, 'allocation removed');
    this.emit('changed');
  }

  #cost(what: DriverMemory, gpus: readonly string[]): number {
    return Math.max(0, ...this.gpus.filter(({ uuid }) => gpus.includes(uuid)).map((gpu) => gpu[what] ?? 0));
  }

  /** The simulated GPU runs kernels of several processes side by side anyway; a node that took no inventory has one allocation. */
  #needsMps({ mode }: { mode: SharingMode }): boolean {
    return mode === 'concurrent' && this.#options.backend.kind === 'real' && this.gpus.length > 0;
  }

  /** @throws ProxyError MPS_MISSING, SOCKET_PATH_LONG */
  #startMps(): void {
    const { backend, state, logger } = this.#options;
    if (backend.kind !== 'real' || this.gpus.length === 0) return;
    const used = new Set(this.promised.flatMap((each) => (this.#needsMps(each) ? each.gpus : [])));
    this.#concurrent = new ConcurrentGpus({
      gpus: this.gpus.filter((gpu) => this.#needsMps(gpu) || used.has(gpu.uuid)),
      ...{ backend, logger, directory: state.mps, uid: this.#concurrentUser },
      ...{ addon: this.#host.addon, launcher: this.#host.launcher },
      ready: () => {
        for (const allocation of this.#allocations.values()) allocation.resume();
      },
      restarted: () => this.emit('mpsRestarted'),
    });
  }

  #startHelpers(): void {
    const { installation, backend, logger, state } = this.#options;
    const { addon, launcher } = this.#host;
    for (const gpu of this.gpus) {
      const workers = new WarmWorkers(gpu, { executable: installation.worker, driver: backend.driver, addon, launcher, logger });
      workers.wanted = this.warmWorkers(gpu);
      this.#warmWorkers.set(gpu, workers);
    }
    if (!this.#options.arbitrated) return;
    this.#arbiter = new Arbiter({
      command: (args) => launcher.command(installation.arbiter, args, 'node service'),
      socket: state.arbiterSocket,
      logger,
      window: this.#settings.window,
      restarted: () => this.emit('arbiterRestarted'),
      table: () => this.#arbiterTable(),
    });
  }

  #arbiterTable(): ArbiterTable {
    const arbitrated = this.allocations.filter(({ specification }) => specification.mode === 'exclusive');
    const workers = arbitrated.flatMap(({ id, sessions }) => sessions.map(({ workerPid }) => ({ pid: workerPid, allocation: id })));
    return { allocations: arbitrated.map(({ specification }) => specification), workers };
  }

  /** Kernels of allocations in concurrent mode run side by side: there are no turns to take. */
  #arbitrate({ specification }: Allocation): void {
    if (specification.mode === 'exclusive') this.#arbiter?.put(specification);
  }

  #takeWarmWorker(gpus: readonly string[]): WarmWorker | undefined {
    const [, workers] = [...this.#warmWorkers].find(([{ uuid }]) => gpus.length === 1 && gpus[0] === uuid) ?? [];
    return workers?.take();
  }

  #noteStart(live: LiveSession): void {
    const { allocation } = live.session.record;
    if (this.#allocations.get(allocation)?.specification.mode === 'exclusive') this.#arbiter?.addWorker(live.workerPid, allocation);
    if (live.workerStart !== 'found') this.emit('sessionStarted', live.workerStart);
    this.emit('changed');
  }

  #noteEnd(session: Session, last: LastFigures): void {
    this.#arbiter?.removeWorker(session.record.worker.pid);
    this.emit('sessionEnded', { session, ...last });
    this.emit('changed');
  }
}

function named({ specification: { id, name } }: Allocation) {
  return { allocation: id, name };
}
