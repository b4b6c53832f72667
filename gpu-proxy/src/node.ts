import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import type {
  AllocationSpecification,
  DriverMemory,
  GpuRecord,
  NodeSnapshot,
  SharingMode,
  TimeUse,
} from '@nvidia-virtual/ledger';
import { SPECIFICATION } from '@nvidia-virtual/node-state/paths';
import {
  checkRequest,
  DEFAULT_LIMITS,
  readReserved,
} from '@nvidia-virtual/node-state/specification';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { plural } from '@nvidia-virtual/service/plural';
import type { Logger } from 'pino';
import { Admission, type GpuWish, type Granted } from './allocations/admission.js';
import { Allocation } from './allocations/allocation.js';
import type { AllocationHost, LastFigures } from './allocations/allocation-host.js';
import type { ClientSocket } from './allocations/client-socket.js';
import { Closer } from './allocations/closer.js';
import { Enforcement } from './allocations/enforcement.js';
import { DEFAULT_WINDOW } from './configuration/schema.js';
import { Arbiter, type ArbiterTable } from './gpus/arbiter.js';
import type { Backend } from './gpus/backend.js';
import type { NvmlReading } from './gpus/nvml-monitor.js';
import { Addon } from './host/addon.js';
import type { Installation } from './host/installation.js';
import { DIRECT, type Launcher } from './host/launcher.js';
import type { StateDirectory } from './host/state-directory.js';
import { ConcurrentGpus } from './mps/concurrent-gpus.js';
import type { AllocationRequest, EndedSession, NodeSettings } from './node-types.js';
import type { LiveSession } from './sessions/live-session.js';
import type { Session } from './sessions/session.js';
import { type WarmWorker, WarmWorkers } from './workers/warm-workers.js';

export interface NodeOptions {
  readonly installation: Installation;
  /** Starts processes that outlive the node; by default child processes. */
  readonly launcher?: Launcher | undefined;
  readonly backend: Backend;
  readonly logger: Logger;
  readonly state: StateDirectory;
  /** The inventory. Empty: unknown; then every request is granted without a check. */
  readonly gpus: readonly GpuRecord[];
  readonly name?: string | undefined;
  readonly settings?: Partial<NodeSettings> | undefined;
  /**
   * Whether an arbiter schedules GPU time. A single allocation needs it only for a share below
   * 100 %.
   */
  readonly arbitrated: boolean;
  /**
   * The reason why the connected process may not use an allocation. By default every process that
   * reaches its socket may.
   */
  readonly whyNotAllowed?: AllocationHost['whyNotAllowed'] | undefined;
  /**
   * Limit in bytes on a cache of compiled code, and the interval of checks; defaults in CacheWatch.
   */
  readonly cacheLimit?: number | undefined;
  readonly cacheEveryMs?: number | undefined;
  /** Called with the node before its first event. */
  observe?(node: GpuNode): void;
}

interface NodeEvents {
  /** An allocation or a session was added, changed or removed. */
  changed: [];
  /** A session started with a warm or cold worker. Not emitted for sessions taken over. */
  sessionStarted: [worker: 'warm' | 'cold'];
  sessionEnded: [EndedSession];
  arbiterRestarted: [];
  mpsRestarted: [];
  /** Its sessions were killed, because the driver reports memory use above the quota. */
  beyondQuota: [allocation: AllocationSpecification];
  /** An error to report to the user of an allocation. */
  trouble: [allocation: AllocationSpecification, error: ProxyError];
  /** An allocation became a grant again. The listener must serve its socket. */
  unbound: [id: string, socket: ClientSocket];
}

const NO_TIME: TimeUse = { granted: 0, waited: 0, overrun: 0, windows: 0 };

/**
 * Manages the GPUs of one machine: creates allocations, accepts their clients, and takes over the
 * state directory of an earlier gpu-proxy. CUDA calls never pass through it.
 */
export class GpuNode extends EventEmitter<NodeEvents> {
  readonly name: string;
  readonly gpus: readonly GpuRecord[];
  readonly #options: NodeOptions;
  readonly #admission: Admission;
  readonly #host: AllocationHost;
  readonly #allocations = new Map<string, Allocation>();
  /**
   * Allocations that cannot be served, by the paths of their specifications. They still count in
   * admission.
   */
  readonly #leftAlone = new Map<string, AllocationSpecification>();
  readonly #unwatchHolders = new Map<string, () => void>();
  readonly #warmWorkers = new Map<GpuRecord, WarmWorkers>();
  #arbiter: Arbiter | undefined;
  #concurrent: ConcurrentGpus | undefined;
  #enforcement: Enforcement | undefined;
  #settings: NodeSettings;

  private constructor(options: NodeOptions) {
    super();
    this.#options = options;
    this.name = options.name ?? hostname();
    this.gpus = options.gpus;
    this.#settings = {
      limits: DEFAULT_LIMITS,
      window: DEFAULT_WINDOW,
      overrunLimit: 0,
      warmWorkers: () => 0,
      ...options.settings,
    };
    this.#admission = new Admission(options.gpus, (gpu) => this.warmWorkers(gpu));
    const addon = new Addon(options.installation.addon);
    this.#host = {
      installation: options.installation,
      launcher: options.launcher ?? DIRECT,
      backend: options.backend,
      logger: options.logger,
      addon,
      closer: new Closer({
        executable: options.installation.closer,
        addon,
        logger: options.logger,
      }),
      // The cache of a temporary node would be lost with it.
      ownCaches: !options.state.temporary,
      cost: (what, gpus) => this.#cost(what, gpus),
      mayStart: (specification) =>
        !this.#needsMps(specification) || (this.#concurrent?.ready(specification.gpus) ?? false),
      mpsClient: (specification) =>
        this.#concurrent?.clientOf(specification, this.#cost('contextMemory', specification.gpus)),
      arbiterSocket: options.arbitrated ? options.state.arbiterSocket : undefined,
      whyNotAllowed: options.whyNotAllowed ?? (() => undefined),
      takeWarmWorker: (gpus) => this.#takeWarmWorker(gpus),
      trouble: (allocation, error) => this.emit('trouble', allocation, error),
      sessionStarted: (session) => this.#noteStart(session),
      sessionEnded: (session, last) => this.#noteEnd(session, last),
    };
  }

  /**
   * Starts a node and takes over the allocations in the state directory.
   * @throws ProxyError WARM_WORKERS_NOT_LEFT, MPS_MISSING
   */
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

  /**
   * Specifications that count in admission: allocations, and those that cannot be served as long as
   * their files exist.
   */
  get promised(): AllocationSpecification[] {
    const leftAlone = [...this.#leftAlone]
      .filter(([file]) => existsSync(file))
      .map(([, specification]) => specification);
    return [...this.allocations.map(({ specification }) => specification), ...leftAlone];
  }

  /** @throws ProxyError WARM_WORKERS_NOT_LEFT; the former settings stay then */
  set settings(settings: NodeSettings) {
    new Admission(this.gpus, (gpu) => this.warmWorkers(gpu, settings)).checkWarmWorkers(
      this.promised,
    );
    this.#settings = settings;
    for (const [gpu, workers] of this.#warmWorkers) workers.wanted = this.warmWorkers(gpu);
    if (!this.#arbiter) return;
    this.#arbiter.window = settings.window;
    this.#arbiter.overrunLimit = settings.overrunLimit;
  }

  /**
   * Creates an allocation. Admission and reservation are one synchronous step, so requests cannot
   * race. @throws ProxyError, with the figures, if it does not fit
   */
  async create(request: AllocationRequest): Promise<Allocation> {
    const allocation = this.#make(this.#specify(request), request);
    this.#allocations.set(allocation.id, allocation);
    try {
      allocation.giveDirectories();
      if (!request.grant) await allocation.listen(request.socketPath);
    } catch (error) {
      this.#remove(allocation);
      throw error;
    }
    this.#options.logger.info(
      { ...named(allocation), ...allocation.specification, id: undefined },
      'allocation made',
    );
    this.#arbitrate(allocation);
    this.#watchHolder(allocation);
    this.emit('changed');
    return allocation;
  }

  /** @throws ProxyError ALLOCATION_UNKNOWN, ALLOCATION_AMBIGUOUS */
  find(idOrName: string): Allocation {
    const byId = this.#allocations.get(idOrName);
    if (byId) return byId;
    const [found, ...others] = this.allocations.filter(
      ({ specification }) => specification.name === idOrName,
    );
    if (!found) throw new ProxyError('ALLOCATION_UNKNOWN', { name: idOrName });
    if (others.length === 0) return found;
    const ids = [found, ...others].map(({ id }) => id).join(', ');
    throw new ProxyError('ALLOCATION_AMBIGUOUS', {
      name: idOrName,
      allocations: plural(others.length + 1, 'allocation'),
      ids,
    });
  }

  /** Refuses new sessions. The allocation is removed after its last session. */
  drain(allocation: Allocation): void {
    allocation.drain();
    this.#options.logger.info(
      { ...named(allocation), sessions: allocation.sessionCount },
      'allocation is drained',
    );
    this.#removeWhenDrained(allocation);
    this.emit('changed');
  }

  /** @throws ProxyError ALLOCATION_IN_USE if it has sessions, unless `force` kills them */
  async delete(allocation: Allocation, { force }: { force: boolean }): Promise<void> {
    const sessions = allocation.sessionCount;
    if (sessions > 0 && !force)
      throw new ProxyError('ALLOCATION_IN_USE', {
        id: allocation.id,
        sessions: plural(sessions, 'session'),
      });
    if (!allocation.specification.draining) allocation.drain();
    allocation.kill();
    await allocation.whenIdle();
    this.#remove(allocation);
  }

  /**
   * Kills its sessions and removes it together with its grant, because its pod is gone.
   */
  async release(allocation: Allocation): Promise<void> {
    if (!allocation.specification.draining) allocation.drain();
    allocation.kill();
    await allocation.whenIdle();
    this.#takeAway(allocation, () => allocation.remove());
  }

  /** What a new allocation would get. @throws ProxyError, with the figures, if it does not fit */
  admit(wish: GpuWish): Granted {
    return this.#admission.admit(wish, this.promised);
  }

  /** The state of the node for ledger and metrics. */
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

  /**
   * Remaining memory of a GPU in bytes, remaining fixed share in percent, and the number of ready
   * warm workers.
   */
  left(gpu: GpuRecord): { memory: number; fixedShare: number; warmWorkersReady: number } {
    const present = this.promised;
    const [memory, fixedShare] = [
      this.#admission.memoryLeft(gpu, present),
      this.#admission.fixedShareLeft(gpu, present),
    ];
    return { memory, fixedShare, warmWorkersReady: this.#warmWorkers.get(gpu)?.ready ?? 0 };
  }

  /** Updates the figures of timeOf(). */
  async refresh(): Promise<void> {
    await this.#arbiter?.refresh();
  }

  /** GPU time of an allocation, as of the latest refresh(). */
  timeOf({ id }: Allocation): TimeUse {
    return this.#arbiter?.timeOf(id) ?? NO_TIME;
  }

  /** Whether GPU time is scheduled. True if no arbiter is needed. */
  get arbiterConnected(): boolean {
    return this.#arbiter?.connected ?? !this.#options.arbitrated;
  }

  /** The reason why programs in concurrent mode must wait; undefined: they need not. */
  get mpsTrouble(): string | undefined {
    return this.#concurrent?.trouble;
  }

  /**
   * The driver's latest reading of processes on its GPUs; undefined: none is recent, or no program
   * uses a GPU.
   */
  get deviceReading(): NvmlReading | undefined {
    return this.#enforcement?.reading;
  }

  /**
   * The fraction of the last minute in which kernels of the allocation ran on a GPU, as the driver
   * reports; undefined: unknown.
   */
  reportedBusy(id: string, gpu: string): number | undefined {
    return this.#enforcement?.busyRatio(id, gpu);
  }

  /**
   * The number of warm workers of a GPU. None under MPS: its limits are fixed at a worker's start.
   */
  warmWorkers(gpu: GpuRecord, settings = this.#settings): number {
    return gpu.mode === 'exclusive' ? settings.warmWorkers(gpu) : 0;
  }

  /** Closes client sockets. Grants use it, too. */
  get closer(): Closer {
    return this.#host.closer;
  }

  /** Detaches. Programs continue, and the next node on this state directory takes over. */
  leave(): void {
    this.#arbiter?.leave();
    this.#enforcement?.end();
    const used = this.allocations
      .filter(({ sessionCount }) => sessionCount > 0)
      .map(({ specification }) => specification);
    this.#concurrent?.leave(
      new Set([...used, ...this.#leftAlone.values()].flatMap(({ gpus }) => gpus)),
    );
    for (const workers of this.#warmWorkers.values()) workers.end();
    for (const allocation of this.#allocations.values()) allocation.leave();
    for (const unwatch of this.#unwatchHolders.values()) unwatch();
    this.#allocations.clear();
    this.#host.closer.end();
    this.#options.state.release();
  }

  /** Waits for the sessions, then removes every allocation. */
  async close(): Promise<void> {
    for (const allocation of this.#allocations.values()) allocation.stopAccepting();
    await Promise.all(this.allocations.map((allocation) => allocation.whenIdle()));
    for (const allocation of this.#allocations.values()) this.#remove(allocation);
    for (const workers of this.#warmWorkers.values()) workers.end();
    this.#concurrent?.leave(new Set());
    this.#enforcement?.end();
    await this.#arbiter?.end();
    this.#host.closer.end();
    this.#options.state.release();
  }

  #specify(request: AllocationRequest): AllocationSpecification {
    const { limits, ...requested } = checkRequest({
      ...request,
      limits: { ...this.#settings.limits, ...request.limits },
    });
    const wish = { ...requested, gpus: request.gpus ?? [], memory: request.memory ?? 0 };
    const granted = this.gpus.length > 0 ? this.#admission.admit(wish, this.promised) : wish;
    return {
      version: 1,
      id: request.grant?.id ?? randomBytes(8).toString('hex'),
      name: request.name,
      gpus: granted.gpus,
      memory: granted.memory,
      ...requested,
      limits,
      uid:
        requested.mode === 'concurrent' ? this.#concurrentUser : (request.uid ?? this.#freeUser()),
      createdAt: new Date().toISOString(),
      draining: false,
      owner: request.owner,
      slots: request.grant?.slots,
    };
  }

  /**
   * User id of all allocations in concurrent mode: the last of the range. MPS serves one user at a
   * time.
   */
  get #concurrentUser(): number | undefined {
    return this.#settings.users?.last;
  }

  #make(specification: AllocationSpecification, { grant, holder }: AllocationRequest): Allocation {
    const parent = this.#options.state.allocations;
    if (grant)
      return Allocation.bind(path.join(parent, grant.id), specification, this.#host, grant.socket);
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

  /** Logs and skips an allocation that cannot be read. Another version may be able to. */
  async #takeOver(id: string): Promise<void> {
    const { state, logger } = this.#options;
    try {
      const allocation = Allocation.load(path.join(state.allocations, id), this.#host);
      this.#allocations.set(id, allocation);
      await allocation.listen();
      logger.info(
        { ...named(allocation), sessions: allocation.sessionCount },
        'allocation found again',
      );
      if (allocation.specification.draining) this.#removeWhenDrained(allocation);
      else this.#watchHolder(allocation);
    } catch (error) {
      this.#leaveAlone(id, error as Error);
    }
  }

  #leaveAlone(id: string, error: Error): void {
    const file = path.join(this.#options.state.allocations, id, SPECIFICATION);
    const specification = this.#allocations.get(id)?.specification ?? readReserved(file);
    if (specification && !this.#allocations.has(id)) this.#leftAlone.set(file, specification);
    const reason = error instanceof ProxyError ? error.message : `${systemReason(error)}.`;
    const promised = specification
      ? 'its memory stays reserved until its directory is removed'
      : 'its memory is not counted, because its quota cannot be read';
    this.#options.logger.error(
      { allocation: id },
      new ProxyError('ALLOCATION_NOT_SERVED', { id, reason, promised }).message,
    );
  }

  #watchHolder(allocation: Allocation): void {
    const { holder } = allocation;
    if (!holder) return;
    const unwatch = this.#host.addon.watchProcess(
      { pid: holder.pid, startTime: holder.startTime ?? '' },
      () => this.#noteHolderGone(allocation),
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
        `The holder of the allocation ended, but the drain could not be saved: ${reason}.`,
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
          `The directory of the drained allocation could not be removed: ${systemReason(error)}.`,
        ),
      );
  }

  /**
   * Removes an allocation. A granted one becomes a grant again, because its container may restart
   * and needs the directory.
   */
  #remove(allocation: Allocation): void {
    this.#takeAway(allocation, () => {
      if (allocation.granted) this.emit('unbound', allocation.id, allocation.unbind());
      else allocation.remove();
    });
  }

  /** Idempotent. */
  #takeAway(allocation: Allocation, removeFiles: () => void): void {
    if (!this.#allocations.delete(allocation.id)) return;
    this.#unwatchHolders.get(allocation.id)?.();
    this.#unwatchHolders.delete(allocation.id);
    this.#arbiter?.remove(allocation.id);
    removeFiles();
    this.#options.logger.info(
      { ...named(allocation), peakMemory: allocation.peakMemory },
      'allocation removed',
    );
    this.emit('changed');
  }

  #cost(what: DriverMemory, gpus: readonly string[]): number {
    return Math.max(
      0,
      ...this.gpus.filter(({ uuid }) => gpus.includes(uuid)).map((gpu) => gpu[what] ?? 0),
    );
  }

  /**
   * The simulated GPU runs kernels of several processes in parallel without MPS. A node without
   * inventory has a single allocation.
   */
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
      const workers = new WarmWorkers(gpu, {
        executable: installation.worker,
        backend,
        addon,
        launcher,
        logger,
      });
      workers.wanted = this.warmWorkers(gpu);
      this.#warmWorkers.set(gpu, workers);
    }
    this.#enforcement = new Enforcement({
      gpus: this.gpus,
      host: this.#host,
      cacheLimit: this.#options.cacheLimit,
      cacheEveryMs: this.#options.cacheEveryMs,
      allocations: () => this.allocations,
      beyondQuota: (specification) => this.emit('beyondQuota', specification),
    });
    if (!this.#options.arbitrated) return;
    this.#arbiter = new Arbiter({
      command: (args) => launcher.command(installation.arbiter, args, 'node service'),
      socket: state.arbiterSocket,
      logger,
      window: this.#settings.window,
      overrunLimit: this.#settings.overrunLimit,
      restarted: () => this.emit('arbiterRestarted'),
      table: () => this.#arbiterTable(),
    });
  }

  #arbiterTable(): ArbiterTable {
    const arbitrated = this.allocations.filter(
      ({ specification }) => specification.mode === 'exclusive',
    );
    const workers = arbitrated.flatMap(({ id, sessions }) =>
      sessions.map(({ workerPid }) => ({ pid: workerPid, allocation: id })),
    );
    return { allocations: arbitrated.map(({ specification }) => specification), workers };
  }

  /** Allocations in concurrent mode run in parallel, without windows. */
  #arbitrate({ specification }: Allocation): void {
    if (specification.mode === 'exclusive') this.#arbiter?.put(specification);
  }

  #takeWarmWorker(gpus: readonly string[]): WarmWorker | undefined {
    const [, workers] =
      [...this.#warmWorkers].find(([{ uuid }]) => gpus.length === 1 && gpus[0] === uuid) ?? [];
    return workers?.take();
  }

  #noteStart(live: LiveSession): void {
    const { allocation } = live.session.record;
    if (this.#allocations.get(allocation)?.specification.mode === 'exclusive')
      this.#arbiter?.addWorker(live.workerPid, allocation);
    this.#enforcement?.sessionStarted();
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
