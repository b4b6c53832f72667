import type { AllocationSpecification, GpuRecord } from '@nvidia-virtual/ledger';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import { identifyProcess, isAlive, userOf } from '@nvidia-virtual/service/process-table';
import type { Logger } from 'pino';
import { type Holding, holdingsOf, marginOf, quotaOn } from './device-memory.js';
import type { NvmlReading } from './nvml-monitor.js';

/** The part of an allocation that the check needs. */
export interface CheckedAllocation {
  readonly specification: Pick<AllocationSpecification, 'id' | 'gpus' | 'memory' | 'mode' | 'uid'>;
  readonly workers: readonly CheckedWorker[];
  /** Bytes of the quota that it may have on a GPU now: less if memory of it has left. */
  readonly most: number;
  /** Ends its sessions. */
  end(error: ProxyError): void;
}

interface CheckedWorker {
  readonly pid: number;
  /** Reported by the worker, so not trusted: used for a warning only. */
  contexts(): number;
}

interface SecondCheckOptions {
  readonly gpus: readonly GpuRecord[];
  readonly logger: Logger;
  allocations(): readonly CheckedAllocation[];
}

/** AGREEING of the LAST readings must agree. One may fall between two steps of the driver. */
const AGREEING = 2;
const LAST = 4;
/**
 * Readings without a process to check, after which reading stops. A next program may start soon.
 */
const IDLE = 40;
/** Sliding window of busyRatio(). */
const BUSY_WINDOW_MS = 60_000;

interface Watched {
  /** Whether the last readings exceeded the limit. */
  beyond: boolean[];
  /** Most that it may have had at each reading, in bytes. One may be older than a move's end. */
  most: number[];
  /** Killed processes that still exist. No program can use their memory. */
  ended: ReadonlySet<number>;
  readonly busy: { readonly at: number; readonly byGpu: ReadonlyMap<string, number> }[];
  readonly since: number;
}

/**
 * Compares the GPU memory of an allocation's processes, as the driver reports it, with the quota.
 * Independent of the workers, which enforce the quota but may be compromised. gpu-proxy knows the
 * pids of workers because it started them, and finds their child processes by user id.
 */
export class SecondCheck {
  readonly #options: SecondCheckOptions;
  readonly #watched = new Map<string, Watched>();
  /** Readings in a row that did not know a worker with a context. */
  #unknown = 0;
  #idle = 0;

  constructor(options: SecondCheckOptions) {
    this.#options = options;
  }

  /** Checks a reading. Returns whether further readings are needed. */
  take(reading: NvmlReading, now = Date.now()): boolean {
    const allocations = this.#options.allocations();
    const owners = ownersIn(reading, allocations);
    for (const id of this.#watched.keys())
      if (!allocations.some(({ specification }) => specification.id === id))
        this.#watched.delete(id);
    for (const allocation of allocations)
      this.#judge(allocation, owners.get(allocation) ?? [], reading, now);
    this.#noteUnknown(allocations, reading);
    const busy = owners.size > 0 || allocations.some(({ workers }) => workers.length > 0);
    this.#idle = busy ? 0 : this.#idle + 1;
    return this.#idle < IDLE;
  }

  /**
   * The fraction of the last minute in which kernels of the allocation ran on a GPU; undefined:
   * unknown.
   */
  busyRatio(id: string, gpu: string, now = Date.now()): number | undefined {
    const watched = this.#watched.get(id);
    if (!watched) return undefined;
    const recent = watched.busy.filter(({ at }) => now - at < BUSY_WINDOW_MS);
    const microseconds = recent.reduce((sum, { byGpu }) => sum + (byGpu.get(gpu) ?? 0), 0);
    return microseconds / 1000 / Math.max(1000, Math.min(BUSY_WINDOW_MS, now - watched.since));
  }

  #judge(
    allocation: CheckedAllocation,
    pids: readonly number[],
    reading: NvmlReading,
    now: number,
  ): void {
    const { id } = allocation.specification;
    const watched = this.#watched.get(id) ?? {
      beyond: [],
      most: Array(LAST).fill(allocation.specification.memory),
      ended: new Set<number>(),
      busy: [],
      since: now,
    };
    this.#watched.set(id, watched);
    noteBusy(watched, pids, reading, now);
    const living = pids.filter((pid) => !watched.ended.has(pid));
    watched.most = [...watched.most, allocation.most].slice(-LAST);
    const most = Math.max(...watched.most);
    const beyond = this.#beyond(allocation, living, reading, most);
    watched.ended = new Set(pids.filter((pid) => watched.ended.has(pid)));
    watched.beyond = [...watched.beyond, beyond !== undefined].slice(-LAST);
    if (!beyond || watched.beyond.filter(Boolean).length < AGREEING) return;
    watched.beyond = [];
    watched.ended = new Set(pids);
    this.#end(allocation, living, beyond, most);
  }

  /** The first GPU on which it exceeds the limit; undefined: none. */
  #beyond(
    { specification }: CheckedAllocation,
    pids: readonly number[],
    reading: NvmlReading,
    most: number,
  ): Holding | undefined {
    if (specification.memory === 0) return undefined;
    return holdingsOf(specification, pids, this.#options.gpus, reading, most).find(
      ({ held, allowed }) => held > allowed,
    );
  }

  #end(
    allocation: CheckedAllocation,
    pids: readonly number[],
    { gpu, held, allowed }: Holding,
    most: number,
  ): void {
    const { specification, workers } = allocation;
    const { id } = specification;
    const quota = quotaOn(gpu, { ...specification, memory: most });
    allocation.end(
      new ProxyError(quota < quotaOn(gpu, specification) ? 'MEMORY_KEPT' : 'MEMORY_BEYOND_QUOTA', {
        id,
        gpu: `${gpu.index} (${gpu.uuid})`,
        held: formatMemorySize(held),
        quota: formatMemorySize(quota),
        provided: formatMemorySize(allowed - quota),
        margin: formatMemorySize(marginOf(gpu)),
      }),
    );
    // Child processes of workers have no session, so they are killed here.
    for (const pid of pids)
      if (!workers.some((worker) => worker.pid === pid) && isUsedBy(pid, specification.uid))
        endProcess(pid);
  }

  /**
   * Warns once about a worker that NVML does not list and that is therefore not checked: its pid
   * differs there, or NVML belongs to another machine.
   */
  #noteUnknown(allocations: readonly CheckedAllocation[], reading: NvmlReading): void {
    const unknown = allocations
      .flatMap(({ workers }) => workers)
      .find((worker) => !reading.has(worker.pid) && worker.contexts() > 0);
    this.#unknown = unknown ? this.#unknown + 1 : this.#unknown < AGREEING ? 0 : this.#unknown;
    if (!unknown || this.#unknown !== AGREEING) return;
    this.#options.logger.warn(
      { worker: unknown.pid },
      'NVML does not know a worker that has a context, so its memory is not compared with its ' +
        'quota. NVML uses the process ids of the host: run gpu-proxy in the pid namespace of ' +
        'the host (hostPID).',
    );
  }
}

/**
 * The processes of a reading by allocation: workers by pid, other processes by the user id of an
 * exclusive allocation.
 */
function ownersIn(
  reading: NvmlReading,
  allocations: readonly CheckedAllocation[],
): Map<CheckedAllocation, number[]> {
  const owners = new Map<CheckedAllocation, number[]>();
  for (const pid of reading.keys()) {
    const owner =
      allocations.find(({ workers }) => workers.some((worker) => worker.pid === pid)) ??
      allocations.find(
        ({ specification: { uid, mode } }) => mode === 'exclusive' && isUsedBy(pid, uid),
      );
    if (owner) owners.set(owner, [...(owners.get(owner) ?? []), pid]);
  }
  return owners;
}

/** False for a process that has exited and still releases its memory. */
function isUsedBy(pid: number, uid: number | undefined): boolean {
  return uid !== undefined && userOf(pid) === uid && isAlive(identifyProcess(pid));
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has already exited.
  }
}

function noteBusy(
  { busy }: Watched,
  pids: readonly number[],
  reading: NvmlReading,
  now: number,
): void {
  const byGpu = new Map<string, number>();
  for (const pid of pids)
    for (const [gpu, use] of reading.get(pid) ?? [])
      if (use.busy > 0) byGpu.set(gpu, (byGpu.get(gpu) ?? 0) + use.busy);
  while (busy[0] && now - busy[0].at >= BUSY_WINDOW_MS) busy.shift();
  if (byGpu.size > 0) busy.push({ at: now, byGpu });
}
