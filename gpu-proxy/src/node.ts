import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import type {
  AllocationSpecification,
  DriverMemory,
  GpuRecord,
  NodeSnapshot,
  Owner,
  Suspender,
  TimeUse,
} from '@nvidia-virtual/ledger';
import { checkRequest, DEFAULT_LIMITS } from '@nvidia-virtual/node-state/specification';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { usersOfProcesses } from '@nvidia-virtual/service/process-table';
import type { Logger } from 'pino';
import { Admission, type GpuWish, type Granted } from './allocations/admission.js';
import type { Allocation } from './allocations/allocation.js';
import type { AllocationHost, LastFigures } from './allocations/allocation-host.js';
import { AllocationRegistry } from './allocations/allocation-registry.js';
import { Closer } from './allocations/closer.js';
import { concurrentUser, freeUser } from './allocations/worker-users.js';
import { Arenas, type PromisedMemory } from './arenas/arenas.js';
import type { NodeMemory } from './arenas/node-memory.js';
import { DEFAULT_GUARANTEED_SHARE, DEFAULT_WINDOW } from './configuration/schema.js';
import type { Backend } from './gpus/backend.js';
import type { NvmlReading } from './gpus/nvml-monitor.js';
import { XidCounts } from './gpus/xids.js';
import { Addon } from './host/addon.js';
import type { Installation } from './host/installation.js';
import { DIRECT, type Launcher } from './host/launcher.js';
import type { StateDirectory } from './host/state-directory.js';
import { NodeProcesses, warmWorkersOf } from './node-processes.js';
import type { AllocationRequest, NodeEvents, NodeSettings } from './node-types.js';
import { Oversubscription } from './residency/oversubscription.js';
import type { LiveSession } from './sessions/live-session.js';
import type { Session } from './sessions/session.js';

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
  /** Reads the host memory of the machine; by default from the kernel. */
  readonly nodeMemory?: (() => NodeMemory) | undefined;
  /** Called with the node before its first event. */
  observe?(node: GpuNode): void;
}

/**
 * Manages the GPUs of one machine: creates allocations, accepts their clients, and takes over the
 * state directory of an earlier gpu-proxy. CUDA calls never pass through it.
 */
export class GpuNode extends EventEmitter<NodeEvents> {
  readonly name: string;
  readonly gpus: readonly GpuRecord[];
  /** Closes client sockets. Grants use it, too. */
  readonly closer: Closer;
  /** Host memory for the GPU memory of suspended sessions. */
  readonly arenas: Arenas;
  readonly #state: StateDirectory;
  readonly #admission: Admission;
  readonly #registry: AllocationRegistry;
  readonly #processes: NodeProcesses;
  readonly #oversubscription: Oversubscription;
  readonly #xids = new XidCounts();
  #settings: NodeSettings;

  private constructor(options: NodeOptions) {
    super();
    const { installation, logger, state, gpus } = options;
    this.name = options.name ?? hostname();
    this.gpus = gpus;
    this.#state = state;
    this.#settings = {
      limits: DEFAULT_LIMITS,
      window: DEFAULT_WINDOW,
      overrunLimit: 0,
      guaranteedShare: DEFAULT_GUARANTEED_SHARE,
      movesManaged: false,
      movable: false,
      warmWorkers: () => 0,
      oversubscription: () => 1,
      ...options.settings,
    };
    this.#admission = this.#admissionBy(() => this.#settings);
    const addon = new Addon(installation.addon);
    this.arenas = new Arenas({
      ...{ installation, addon, launcher: options.launcher ?? DIRECT },
      record: state.arenas,
      limit: () => this.#settings.hostMemory,
      promised: () => this.#promisedMemory(),
      nodeMemory: options.nodeMemory,
    });
    this.closer = new Closer({ executable: installation.closer, addon, logger });
    const host = this.#makeHost(options, addon);
    this.#registry = new AllocationRegistry({
      ...{ host, directory: state.allocations },
      created: (specification) => this.#processes.allocationPlaced(specification),
      changed: () => this.emit('changed'),
      removed: (id) => this.#processes.allocationRemoved(id),
      moved: (...move) => this.emit('moved', ...move),
      suspensionChanged: (specification) => this.emit('suspensionChanged', specification),
      unbound: (id, socket) => this.emit('unbound', id, socket),
    });
    this.#oversubscription = this.#oversubscribe(logger);
    const { arbitrated, cacheLimit, cacheEveryMs } = options;
    this.#processes = new NodeProcesses({
      ...{ host, state, gpus, settings: this.#settings, arbitrated, cacheLimit, cacheEveryMs },
      allocations: () => this.allocations,
      arbiterRestarted: () => this.emit('arbiterRestarted'),
      mpsRestarted: () => this.emit('mpsRestarted'),
      beyondQuota: (specification) => this.emit('beyondQuota', specification),
      xidReported: (report) => {
        this.#xids.add(report);
        this.emit('xid', report);
      },
    });
  }

  /**
   * Starts a node and takes over the allocations in the state directory.
   * @throws ProxyError WARM_WORKERS_NOT_LEFT, MPS_MISSING
   */
  static async start(options: NodeOptions): Promise<GpuNode> {
    const node = new GpuNode(options);
    options.observe?.(node);
    for (const id of options.state.allocationIds()) await node.#registry.takeOver(id);
    try {
      node.#admission.checkWarmWorkers(node.promised);
      node.#processes.startMps(node.promised);
    } catch (error) {
      node.leave();
      throw error;
    }
    node.#processes.start();
    node.#oversubscription.start();
    return node;
  }

  get allocations(): Allocation[] {
    return this.#registry.all;
  }

  /** Specifications that count in admission. */
  get promised(): AllocationSpecification[] {
    return this.#registry.promised;
  }

  get settings(): NodeSettings {
    return this.#settings;
  }

  /** @throws ProxyError WARM_WORKERS_NOT_LEFT; the former settings stay then */
  set settings(settings: NodeSettings) {
    this.#admissionBy(() => settings).checkWarmWorkers(this.promised);
    this.#settings = settings;
    this.#processes.settings = settings;
  }

  /**
   * Creates an allocation. Admission and reservation are one synchronous step, so requests cannot
   * race. @throws ProxyError, with the figures, if it does not fit
   */
  async create(request: AllocationRequest): Promise<Allocation> {
    try {
      return await this.#registry.create(this.#specify(request), request);
    } catch (error) {
      if (!(error instanceof ProxyError && error.code === 'OVERSUBSCRIPTION_NOT_LEFT')) throw error;
    }
    await this.arenas.giveUpUnused();
    return this.#registry.create(this.#specify(request), request);
  }

  /** @throws ProxyError ALLOCATION_UNKNOWN, ALLOCATION_AMBIGUOUS */
  find(idOrName: string): Allocation {
    return this.#registry.find(idOrName);
  }

  /** Refuses new sessions. The allocation is removed after its last session. */
  drain(allocation: Allocation): void {
    this.#registry.drain(allocation);
  }

  /**
   * Takes GPU time and memory from its sessions.
   * @throws ProxyError nothing has changed then, except after MEMORY_NOT_BACK: it is suspended
   */
  suspend(allocation: Allocation, by: Suspender = 'node'): Promise<void> {
    return this.#registry.suspend(allocation, by);
  }

  /**
   * Gives both back to its sessions, if nobody else suspends it.
   * @throws ProxyError MEMORY_NOT_BACK; it stays suspended
   */
  resume(allocation: Allocation, by: Suspender = 'node'): Promise<void> {
    return this.#registry.resume(allocation, by);
  }

  /** The latest event of its pod says whether it is suspended. */
  noteTold(id: string, suspended: boolean): void {
    this.#registry.get(id)?.noteTold(suspended);
  }

  /**
   * Moves it to another GPU of the same model.
   * @param gpu index or UUID
   * @param by an allocation of a pod moves only by its pod, which the scheduler counts on a GPU
   * @throws ProxyError it is where it was then
   */
  async move(allocation: Allocation, gpu: string, by: 'node' | 'pod' = 'node'): Promise<void> {
    const { specification } = allocation;
    const { id, owner } = specification;
    const others = this.promised.filter((one) => one.id !== id);
    const target = this.#admission.admitMove(specification, gpu, others);
    const reason = (by === 'node' && owner && whyOnlyByPod(owner)) || this.#whyUnmovable();
    if (reason !== undefined)
      throw new ProxyError('ALLOCATION_STAYS', { id, gpu: target.uuid, reason });
    await this.#registry.move(allocation, target.uuid);
  }

  /** Whether programs of this node can move to other GPUs. */
  get movable(): boolean {
    return this.#whyUnmovable() === undefined;
  }

  #whyUnmovable(): string | undefined {
    if (!this.#settings.movable) return 'the option movable of gpu-proxy is off';
    return this.arenas.limit === 0 ? 'hostMemory is 0, so its GPU memory cannot leave' : undefined;
  }

  /** The allocation whose sessions are in this directory. @throws ProxyError CHECKPOINT_UNKNOWN */
  findCheckpoint(directory: string): Allocation {
    const isIn = ({ specification }: Allocation) =>
      specification.checkpoint?.directory === directory;
    const found = this.allocations.find(isIn);
    if (!found) throw new ProxyError('CHECKPOINT_UNKNOWN', { directory });
    return found;
  }

  /**
   * Writes its sessions to files in a directory, which must not exist.
   * @param key undefined: this node makes one, and keeps it
   * @throws ProxyError nothing has changed
   */
  checkpoint(allocation: Allocation, directory: string, key?: Buffer): Promise<void> {
    return this.#registry.checkpoint(allocation, directory, key);
  }

  /**
   * Makes its sessions again from their files.
   * @param key undefined: the one that this node has
   * @throws ProxyError
   */
  restore(allocation: Allocation, key?: Buffer): Promise<void> {
    return this.#registry.restore(allocation, key);
  }

  /** @throws ProxyError ALLOCATION_IN_USE if it has sessions, unless `force` kills them */
  delete(allocation: Allocation, options: { force: boolean }): Promise<void> {
    return this.#registry.delete(allocation, options);
  }

  /** Kills its sessions and removes it together with its grant, because its pod is gone. */
  release(allocation: Allocation): Promise<void> {
    return this.#registry.release(allocation);
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
      state: allocation.state,
      outBytes: allocation.outBytes,
      suspensionRefused: allocation.suspensionRefused,
      sessions: allocation.sessions.map((live) => ({ record: live.session.record, use: live.use })),
    }));
    return { node: this.name, gpus: this.gpus, allocations };
  }

  /**
   * Remaining memory of a GPU in bytes, remaining fixed share in percent, and the number of ready
   * warm workers.
   */
  left(gpu: GpuRecord): { memory: number; fixedShare: number; warmWorkersReady: number } {
    const present = this.promised;
    return {
      memory: this.#admission.memoryLeft(gpu, present),
      fixedShare: this.#admission.fixedShareLeft(gpu, present),
      warmWorkersReady: this.#processes.warmWorkersReady(gpu),
    };
  }

  /** Updates the figures of timeOf(). */
  refresh(): Promise<void> {
    return this.#processes.refresh();
  }

  /** GPU time of an allocation, as of the latest refresh(). */
  timeOf({ id }: Allocation): TimeUse {
    return this.#processes.timeOf(id);
  }

  /** Whether GPU time is scheduled. True if no arbiter is needed. */
  get arbiterConnected(): boolean {
    return this.#processes.arbiterConnected;
  }

  /** Part of the last five minutes during which memory of the GPU moved. @param gpu its UUID */
  exchangingRatio(gpu: string): number {
    return this.#oversubscription.exchangingRatio(gpu);
  }

  /** The reason why programs in concurrent mode must wait; undefined: they need not. */
  get mpsTrouble(): string | undefined {
    return this.#processes.mpsTrouble;
  }

  /** The driver's latest reading of processes on its GPUs; undefined: none is recent. */
  get deviceReading(): NvmlReading | undefined {
    return this.#processes.deviceReading;
  }

  /** How often the driver reported each Xid for a GPU. @param gpu its UUID */
  xidsOf(gpu: string): ReadonlyMap<number, number> {
    return this.#xids.of(gpu);
  }

  /** See NodeProcesses. */
  reportedBusy(id: string, gpu: string): number | undefined {
    return this.#processes.reportedBusy(id, gpu);
  }

  /** The number of warm workers of a GPU, by the settings. */
  warmWorkers(gpu: GpuRecord): number {
    return warmWorkersOf(gpu, this.#settings);
  }

  /** Detaches. Programs continue, and the next node on this state directory takes over. */
  leave(): void {
    this.#oversubscription.end();
    this.#processes.leave(this.#registry.gpusInUse);
    this.#registry.leave();
    this.#finish();
  }

  /** Waits for the sessions, then removes every allocation. */
  async close(): Promise<void> {
    await this.#registry.close();
    this.#oversubscription.end();
    await this.#processes.end();
    this.#finish();
  }

  #finish(): void {
    this.arenas.leave();
    this.closer.end();
    this.#state.release();
  }

  #admissionBy(settings: () => NodeSettings): Admission {
    return new Admission(this.gpus, {
      warmWorkers: (gpu) => warmWorkersOf(gpu, settings()),
      oversubscription: (gpu) => settings().oversubscription(gpu),
      hostMemory: () => this.arenas.limit,
      hostLent: () => this.arenas.lent,
    });
  }

  #promisedMemory(): PromisedMemory {
    const over = this.promised.filter(({ gpus }) => this.#isOversubscribed(gpus));
    const ids = new Set(over.map(({ id }) => id));
    const needed = this.#admission.hostNeeded(over);
    return {
      bytes: Math.max(needed, this.#settings.slotsHostMemory ?? 0),
      includes: (allocation) => ids.has(allocation),
    };
  }

  #oversubscribe(logger: Logger): Oversubscription {
    return new Oversubscription({
      gpus: this.gpus,
      isOversubscribed: (gpu) => this.#admission.isOversubscribed(gpu),
      refresh: () => this.refresh(),
      node: {
        logger,
        roomOf: (gpu) => this.#roomOf(gpu),
        hostMemory: () => this.arenas.limit,
        guaranteedShare: () => this.#settings.guaranteedShare,
        allocations: () => this.allocations,
        timeOf: (allocation) => this.timeOf(allocation),
        evict: (allocation, bytes) => this.#registry.evict(allocation, bytes),
        admit: (allocation, bytes) => this.#registry.admit(allocation, bytes),
        moved: () => this.#oversubscription.moved(),
        trouble: (specification, error) => this.emit('trouble', specification, error),
      },
    });
  }

  /**
   * Bytes for the memory of its allocations. Those that it cannot serve keep their quotas, and so
   * do those that move.
   */
  #roomOf(gpu: GpuRecord): number {
    const served = new Set(this.allocations.map(({ id }) => id));
    const kept = this.promised
      .filter(
        ({ id, gpus, moving }) =>
          moving === gpu.uuid || (gpus.includes(gpu.uuid) && !served.has(id)),
      )
      .reduce((sum, { memory }) => sum + memory, 0);
    return Math.max(0, this.#admission.roomOf(gpu, this.promised) - kept);
  }

  #isOversubscribed(gpus: readonly string[]): boolean {
    const own = this.gpus.filter(({ uuid }) => gpus.includes(uuid));
    return own.some((gpu) => this.#admission.isOversubscribed(gpu));
  }

  #makeHost(options: NodeOptions, addon: Addon): AllocationHost {
    const { installation, backend, logger, state, launcher = DIRECT } = options;
    return {
      ...{ installation, backend, logger, addon, launcher, closer: this.closer },
      arenas: this.arenas,
      gpuMemory: (gpus) => this.#memoryOf(gpus),
      // The cache of a temporary node would be lost with it.
      ownCaches: !state.temporary,
      movesManaged: () => this.#settings.movesManaged,
      cost: (what, gpus) => this.#cost(what, gpus),
      isOversubscribed: ({ gpus }) => this.#isOversubscribed(gpus),
      otherPlaces: (gpus) => (this.#settings.movable ? this.#admission.otherPlaces(gpus) : []),
      placed: (specification) => {
        this.#processes.allocationPlaced(specification);
        this.emit('changed');
      },
      mayStart: (specification) => this.#processes.mayStart(specification),
      mpsClient: (specification) =>
        this.#processes.mpsClient(specification, this.#cost('contextMemory', specification.gpus)),
      arbiterSocket: options.arbitrated ? state.arbiterSocket : undefined,
      whyNotAllowed: options.whyNotAllowed ?? (() => undefined),
      takeWarmWorker: (gpus) => this.#processes.takeWarmWorker(gpus),
      sessionRecords: () => state.sessionRecords(),
      trouble: (allocation, error) => this.emit('trouble', allocation, error),
      sessionStarted: (session) => this.#noteStart(session),
      sessionEnded: (session, last) => this.#noteEnd(session, last),
    };
  }

  #specify(request: AllocationRequest): AllocationSpecification {
    const { limits, ...requested } = checkRequest({
      ...request,
      limits: { ...this.#settings.limits, ...request.limits },
    });
    const wish = { ...requested, gpus: request.gpus ?? [], memory: request.memory ?? 0 };
    const granted = this.gpus.length > 0 ? this.admit(wish) : wish;
    return {
      version: 1,
      id: request.grant?.id ?? randomBytes(8).toString('hex'),
      name: request.name,
      gpus: granted.gpus,
      memory: granted.memory,
      ...requested,
      limits,
      uid: this.#userFor(requested.mode, request.uid),
      createdAt: new Date().toISOString(),
      draining: false,
      ...this.#suspended(request, granted.gpus),
      owner: request.owner,
      slots: request.grant?.slots,
    };
  }

  /** On an oversubscribed GPU, it gets room when its first program asks for it. */
  #suspended({ suspended }: AllocationRequest, gpus: readonly string[]) {
    const by: readonly Suspender[] = [
      ...(suspended ? (['pod'] as const) : []),
      ...(this.#isOversubscribed(gpus) ? (['policy'] as const) : []),
    ];
    return by.length > 0 && { suspended: true, suspendedBy: by };
  }

  #userFor(mode: AllocationSpecification['mode'], requested?: number): number | undefined {
    const { users } = this.#settings;
    if (mode === 'concurrent') return concurrentUser(users);
    return requested ?? freeUser(users, this.gpus, this.promised, usersOfProcesses);
  }

  #cost(what: DriverMemory, gpus: readonly string[]): number {
    return Math.max(
      0,
      ...this.gpus.filter(({ uuid }) => gpus.includes(uuid)).map((gpu) => gpu[what] ?? 0),
    );
  }

  #memoryOf(gpus: readonly string[]): number | undefined {
    const own = this.gpus.filter(({ uuid }) => gpus.includes(uuid));
    return own.length === 0 ? undefined : own.reduce((sum, { memory }) => sum + memory, 0);
  }

  #noteStart(live: LiveSession): void {
    const { allocation } = live.session.record;
    this.#processes.sessionStarted(live, this.#registry.get(allocation)?.specification);
    if (live.workerStart !== 'found') this.emit('sessionStarted', live.workerStart);
    this.emit('changed');
  }

  #noteEnd(session: Session, last: LastFigures): void {
    this.#processes.sessionEnded(session);
    this.emit('sessionEnded', { session, ...last });
    this.emit('changed');
  }
}

function whyOnlyByPod({ namespace, pod }: Owner): string {
  return (
    `it belongs to pod ${namespace}/${pod}: use ` +
    `\`kubectl gpu-usage move ${pod} -n ${namespace} --gpu\``
  );
}
