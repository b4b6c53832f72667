import type { AllocationSpecification, GpuRecord } from '@nvidia-virtual/ledger';
import type { ProxyError } from '@nvidia-virtual/service/errors';
import { NvmlMonitor, type NvmlReading, parseReading } from '../gpus/nvml-monitor.js';
import { type CheckedAllocation, SecondCheck } from '../gpus/second-check.js';
import { parseXids, type XidReport } from '../gpus/xids.js';
import type { Allocation } from './allocation.js';
import type { AllocationHost } from './allocation-host.js';
import { type CachedAllocation, CacheWatch } from './cache-watch.js';

interface EnforcementOptions {
  /** Empty: there are no other tenants, and memory is not checked. */
  readonly gpus: readonly GpuRecord[];
  readonly host: AllocationHost;
  readonly cacheLimit: number | undefined;
  readonly cacheEveryMs: number | undefined;
  allocations(): readonly Allocation[];
  /** Called after sessions are killed because NVML reports memory use above the quota. */
  beyondQuota(allocation: AllocationSpecification): void;
  /** Called with each Xid. They are read only while programs use a GPU. */
  xidReported(report: XidReport): void;
}

interface Reading {
  readonly processes: NvmlReading;
  readonly xids: readonly XidReport[];
}

/** Two readings must agree before sessions are killed, so there are four per second. */
const EVERY_MS = 250;

/**
 * Enforces limits on workers that a client may have compromised: GPU memory as NVML reports it, and
 * the size of the cache of compiled code. The same readings tell the Xids of the GPUs.
 */
export class Enforcement {
  readonly #options: EnforcementOptions;
  readonly #monitor: NvmlMonitor<Reading> | undefined;
  readonly #check: SecondCheck | undefined;
  readonly #caches: CacheWatch | undefined;

  constructor(options: EnforcementOptions) {
    const { gpus, host, cacheLimit: limit, cacheEveryMs: everyMs } = options;
    const { logger } = host;
    this.#options = options;
    if (gpus.length > 0) {
      const check = new SecondCheck({
        gpus,
        logger,
        allocations: () => options.allocations().map((one) => this.#checked(one)),
      });
      const monitor: NvmlMonitor<Reading> = new NvmlMonitor({
        installation: host.installation,
        backend: host.backend,
        launcher: host.launcher,
        logger,
        words: ['--xids', '--watch', String(EVERY_MS)],
        consequence:
          'NVML does not report the memory of the workers, so only the workers enforce the quotas',
        parse: (line) => ({ processes: parseReading(line), xids: parseXids(line) }),
        reading: ({ processes, xids }) => {
          for (const report of xids) options.xidReported(report);
          monitor.wanted = check.take(processes);
        },
      });
      monitor.wanted = this.#used.length > 0;
      this.#check = check;
      this.#monitor = monitor;
    }
    if (host.ownCaches)
      this.#caches = new CacheWatch({
        allocations: () => this.#used.map((allocation) => this.#cached(allocation)),
        logger,
        ...(limit && { limit }),
        ...(everyMs && { everyMs }),
      });
  }

  /** Undefined: no recent answer, or no program uses a GPU. */
  get reading(): NvmlReading | undefined {
    return this.#monitor?.latest?.processes;
  }

  /** Fraction of the last minute in which kernels of the allocation ran; undefined: unknown. */
  busyRatio(id: string, gpu: string): number | undefined {
    return this.#check?.busyRatio(id, gpu);
  }

  sessionStarted(): void {
    if (this.#monitor) this.#monitor.wanted = true;
  }

  end(): void {
    this.#caches?.end();
    if (this.#monitor) this.#monitor.wanted = false;
  }

  get #used(): Allocation[] {
    return this.#options.allocations().filter(({ sessionCount }) => sessionCount > 0);
  }

  #cached(allocation: Allocation): CachedAllocation {
    return {
      id: allocation.id,
      directories: allocation.written,
      end: (error) => {
        this.#log(allocation, error);
        this.#options.host.trouble(allocation.specification, error);
        allocation.kill();
        void allocation.whenIdle().then(() => {
          if (this.#options.allocations().includes(allocation)) allocation.emptyWritten();
        });
      },
    };
  }

  #checked(allocation: Allocation): CheckedAllocation {
    const { specification, here } = allocation;
    return {
      ...{ specification, most: Math.min(specification.memory, here) },
      workers: allocation.sessions.map((live) => ({
        pid: live.workerPid,
        // A parked worker has no context: the driver has taken it away.
        contexts: () => (live.session.record.parked ? 0 : live.figures.contexts),
      })),
      end: (error) => {
        this.#log(allocation, error);
        allocation.kill();
        this.#options.beyondQuota(specification);
        this.#options.host.trouble(specification, error);
      },
    };
  }

  #log({ specification: { id, name } }: Allocation, { message }: ProxyError): void {
    this.#options.host.logger.error({ allocation: id, name }, message);
  }
}
