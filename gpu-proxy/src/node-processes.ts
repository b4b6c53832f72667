import type {
  AllocationSpecification,
  GpuRecord,
  SharingMode,
  TimeUse,
} from '@nvidia-virtual/ledger';
import type { Allocation } from './allocations/allocation.js';
import type { AllocationHost } from './allocations/allocation-host.js';
import { Enforcement } from './allocations/enforcement.js';
import { concurrentUser } from './allocations/worker-users.js';
import { Arbiter, type ArbiterTable } from './gpus/arbiter.js';
import type { NvmlReading } from './gpus/nvml-monitor.js';
import type { XidReport } from './gpus/xids.js';
import type { StateDirectory } from './host/state-directory.js';
import { ConcurrentGpus, type MpsClient } from './mps/concurrent-gpus.js';
import type { NodeSettings } from './node-types.js';
import { NvmlPages } from './nvml/pages.js';
import type { LiveSession } from './sessions/live-session.js';
import type { Session } from './sessions/session.js';
import { type WarmWorker, WarmWorkers } from './workers/warm-workers.js';

interface NodeProcessesOptions {
  readonly host: AllocationHost;
  readonly state: StateDirectory;
  readonly gpus: readonly GpuRecord[];
  readonly settings: NodeSettings;
  readonly arbitrated: boolean;
  readonly cacheLimit: number | undefined;
  readonly cacheEveryMs: number | undefined;
  allocations(): readonly Allocation[];
  arbiterRestarted(): void;
  mpsRestarted(): void;
  /** The sessions of an allocation were killed, because NVML reports memory above its quota. */
  beyondQuota(allocation: AllocationSpecification): void;
  xidReported(report: XidReport): void;
}

const NO_TIME: TimeUse = { granted: 0, waited: 0, overrun: 0, windows: 0 };

/**
 * The processes that a node runs for all its allocations together: the arbiter of GPU time, the MPS
 * daemons, the warm workers, the watch over memory and caches, and what NVML in containers shows.
 */
export class NodeProcesses {
  readonly #options: NodeProcessesOptions;
  readonly #warmWorkers = new Map<GpuRecord, WarmWorkers>();
  #settings: NodeSettings;
  #arbiter: Arbiter | undefined;
  #concurrent: ConcurrentGpus | undefined;
  #enforcement: Enforcement | undefined;
  #pages: NvmlPages | undefined;

  constructor(options: NodeProcessesOptions) {
    this.#options = options;
    this.#settings = options.settings;
    options.host.launcher.allowUserfaultfd(options.settings.movesManaged);
  }

  /**
   * Starts MPS, which workers in concurrent mode need.
   * @param present also names GPUs that left concurrent mode while an allocation still uses them
   * @throws ProxyError MPS_MISSING, SOCKET_PATH_LONG
   */
  startMps(present: readonly AllocationSpecification[]): void {
    const { host, gpus, state } = this.#options;
    const { backend, logger, addon, launcher } = host;
    if (backend.kind !== 'real' || gpus.length === 0) return;
    const used = new Set(present.flatMap((each) => (this.#needsMps(each) ? each.gpus : [])));
    this.#concurrent = new ConcurrentGpus({
      gpus: gpus.filter((gpu) => this.#needsMps(gpu) || used.has(gpu.uuid)),
      ...{ backend, logger, directory: state.mps, addon, launcher },
      uid: concurrentUser(this.#settings.users),
      ready: () => {
        for (const allocation of this.#options.allocations()) allocation.resume();
      },
      restarted: () => this.#options.mpsRestarted(),
    });
  }

  start(): void {
    for (const gpu of this.#options.gpus) this.#startWarmWorkers(gpu);
    const { host, gpus, cacheLimit, cacheEveryMs } = this.#options;
    this.#enforcement = new Enforcement({
      ...{ gpus, host, cacheLimit, cacheEveryMs },
      allocations: () => this.#options.allocations(),
      beyondQuota: (specification) => this.#options.beyondQuota(specification),
      xidReported: (report) => this.#options.xidReported(report),
    });
    if (this.#options.arbitrated) this.#arbiter = this.#startArbiter();
    const allocations = () => this.#options.allocations();
    this.#pages = new NvmlPages({ host, always: gpus.length === 0, allocations });
    this.#pages.publish();
  }

  set settings(settings: NodeSettings) {
    const allows = settings.movesManaged;
    const isOther = allows !== this.#settings.movesManaged;
    this.#settings = settings;
    this.#options.host.launcher.allowUserfaultfd(allows);
    for (const [gpu, workers] of this.#warmWorkers) {
      if (isOther) workers.renew();
      workers.wanted = warmWorkersOf(gpu, settings);
    }
    if (!this.#arbiter) return;
    this.#arbiter.window = settings.window;
    this.#arbiter.overrunLimit = settings.overrunLimit;
    this.#arbiter.guaranteedShare = settings.guaranteedShare;
  }

  /** An allocation was created, or is on another GPU. */
  allocationPlaced(specification: AllocationSpecification): void {
    if (isArbitrated(specification)) this.#arbiter?.put(specification);
    this.#pages?.publish();
  }

  allocationRemoved(id: string): void {
    this.#arbiter?.remove(id);
    this.#pages?.remove(id);
  }

  sessionStarted(live: LiveSession, allocation: AllocationSpecification | undefined): void {
    if (allocation && isArbitrated(allocation))
      this.#arbiter?.addWorker(live.workerPid, allocation.id);
    this.#enforcement?.sessionStarted();
  }

  sessionEnded(session: Session): void {
    this.#arbiter?.removeWorker(session.record.worker.pid);
  }

  /** Whether a worker of the allocation may start now. */
  mayStart(specification: AllocationSpecification): boolean {
    return !this.#needsMps(specification) || (this.#concurrent?.ready(specification.gpus) ?? false);
  }

  mpsClient(specification: AllocationSpecification, contextMemory: number): MpsClient | undefined {
    return this.#concurrent?.clientOf(specification, contextMemory);
  }

  /** A worker with a ready context on exactly these GPUs; undefined: none. */
  takeWarmWorker(gpus: readonly string[]): WarmWorker | undefined {
    if (gpus.length !== 1) return undefined;
    const [, workers] = [...this.#warmWorkers].find(([{ uuid }]) => gpus[0] === uuid) ?? [];
    return workers?.take();
  }

  /** The number of ready warm workers. */
  warmWorkersReady(gpu: GpuRecord): number {
    return this.#warmWorkers.get(gpu)?.ready ?? 0;
  }

  /** Updates the figures of timeOf(). */
  async refresh(): Promise<void> {
    await this.#arbiter?.refresh();
  }

  /** GPU time of an allocation, as of the latest refresh(). */
  timeOf(id: string): TimeUse {
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
   * Detaches. The arbiter continues, and so does MPS on the GPUs in use, for running programs and
   * the next gpu-proxy.
   */
  leave(gpusInUse: ReadonlySet<string>): void {
    this.#arbiter?.leave();
    this.#endOthers(gpusInUse);
  }

  /** Ends all processes. Requires that no session is left. */
  async end(): Promise<void> {
    this.#endOthers(new Set());
    await this.#arbiter?.end();
  }

  #endOthers(gpusInUse: ReadonlySet<string>): void {
    this.#enforcement?.end();
    this.#pages?.end();
    this.#concurrent?.leave(gpusInUse);
    for (const workers of this.#warmWorkers.values()) workers.end();
  }

  /**
   * The simulated GPU runs kernels of several processes in parallel without MPS. A node without
   * inventory has a single allocation.
   */
  #needsMps({ mode }: { mode: SharingMode }): boolean {
    const { host, gpus } = this.#options;
    return mode === 'concurrent' && host.backend.kind === 'real' && gpus.length > 0;
  }

  #startWarmWorkers(gpu: GpuRecord): void {
    const { installation, backend, addon, launcher, logger } = this.#options.host;
    const workers = new WarmWorkers(gpu, {
      executable: installation.worker,
      ...{ backend, addon, launcher, logger },
      otherPlaces: () => this.#options.host.otherPlaces([gpu.uuid]),
    });
    workers.wanted = warmWorkersOf(gpu, this.#settings);
    this.#warmWorkers.set(gpu, workers);
  }

  #startArbiter(): Arbiter {
    const { installation, addon, launcher, logger } = this.#options.host;
    const { window, overrunLimit, guaranteedShare } = this.#settings;
    return new Arbiter({
      command: (args) => launcher.command(installation.arbiter, args, 'node service'),
      socket: this.#options.state.arbiterSocket,
      ...{ addon, logger, window, overrunLimit, guaranteedShare },
      restarted: () => this.#options.arbiterRestarted(),
      table: () => this.#arbiterTable(),
    });
  }

  #arbiterTable(): ArbiterTable {
    const arbitrated = this.#options
      .allocations()
      .filter(({ specification }) => isArbitrated(specification));
    const workers = arbitrated.flatMap(({ id, sessions }) =>
      sessions.map(({ workerPid }) => ({ pid: workerPid, allocation: id })),
    );
    return { allocations: arbitrated.map(({ specification }) => specification), workers };
  }
}

/**
 * The number of warm workers of a GPU. None under MPS: its limits are fixed at a worker's start.
 */
export function warmWorkersOf(gpu: GpuRecord, settings: NodeSettings): number {
  return gpu.mode === 'exclusive' ? settings.warmWorkers(gpu) : 0;
}

/** Allocations in concurrent mode run in parallel, without windows. */
function isArbitrated({ mode }: AllocationSpecification): boolean {
  return mode === 'exclusive';
}
