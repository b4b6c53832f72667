import { existsSync } from 'node:fs';
import path from 'node:path';
import type { AllocationSpecification, GpuRecord, SessionRecord, SessionUse } from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import type { Backend } from './backend.js';
import { systemReason } from './errors.js';
import { inquire } from './inquiry.js';
import type { Installation } from './installation.js';
import type { Launcher } from './launcher.js';

const PATIENCE_MS = 5000;
const FRESH_MS = 5000;

/** Bytes by GPU, by process. */
export type ProcessMemory = ReadonlyMap<number, ReadonlyMap<string, number>>;

/** Device memory of an allocation's workers. */
export interface ReportedMemory {
  /** Bytes, as NVML says. */
  readonly reported: number;
  /** Bytes of them that neither the quota counts nor the node provides for. Less than 0: less was taken than is counted. */
  readonly unaccounted: number;
}

export interface DeviceMemoryOptions {
  readonly installation: Installation;
  readonly backend: Backend;
  readonly launcher: Launcher;
  readonly logger: Logger;
  readonly patienceMs?: number;
}

/** Who holds how much of the GPUs, by NVML, which a process of its own asks: no proxy ever loads a part of the driver. */
export class DeviceMemory {
  readonly #options: DeviceMemoryOptions;
  readonly #library: string;
  #known: ProcessMemory = new Map();
  #asked = 0;
  #failed = false;

  constructor(options: DeviceMemoryOptions) {
    this.#options = options;
    this.#library = path.join(path.dirname(options.backend.driver), 'libnvidia-ml.so.1');
  }

  /** Not older than some seconds; empty where there is no NVML. */
  async read(): Promise<ProcessMemory> {
    const { backend, launcher } = this.#options;
    if (backend.kind !== 'real' || !existsSync(launcher.seen(this.#library)) || Date.now() - this.#asked < FRESH_MS) return this.#known;
    this.#asked = Date.now();
    this.#known = await this.#ask();
    return this.#known;
  }

  async #ask(): Promise<ProcessMemory> {
    const { installation, launcher, logger, patienceMs = PATIENCE_MS } = this.#options;
    try {
      const said = await inquire(launcher.command(installation.worker, ['--processes', this.#library]), patienceMs);
      const memory = parseProcessMemory(said);
      this.#failed = false;
      return memory;
    } catch (error) {
      if (!this.#failed) logger.warn(`NVML does not say what the workers hold: ${systemReason(error)}`);
      this.#failed = true;
      return new Map();
    }
  }
}

/** What `nvidia-virtual-worker --processes` printed. */
export function parseProcessMemory(line: string): ProcessMemory {
  const { gpus } = JSON.parse(line) as { gpus: { uuid: string; processes: { pid: number; memory: number }[] }[] };
  const processes = new Map<number, Map<string, number>>();
  for (const { uuid, processes: list } of gpus) {
    for (const { pid, memory } of list) processes.set(pid, (processes.get(pid) ?? new Map<string, number>()).set(uuid, memory));
  }
  return processes;
}

/**
 * Compares what NVML says of the workers with what is charged. Provided for are the contexts that the quota does not count: one on each GPU, of
 * which only the session in slot 0 has the first for nothing. Undefined when NVML knows none of them: it names processes by the host's pids.
 */
export function compareMemory(
  allocation: { specification: Pick<AllocationSpecification, 'gpus'>; sessions: readonly { record: SessionRecord; use: SessionUse }[] },
  gpus: readonly GpuRecord[],
  processes: ProcessMemory,
): ReportedMemory | undefined {
  const contextOn = (uuid: string) => gpus.find((gpu) => gpu.uuid === uuid)?.contextMemory ?? 0;
  const charged = Math.max(0, ...allocation.specification.gpus.map(contextOn));
  const compared = allocation.sessions.flatMap(({ record, use }) => {
    const byGpu = processes.get(record.worker.pid);
    if (!byGpu) return [];
    const reported = sum([...byGpu.values()]);
    const provided = sum([...byGpu.keys()].map(contextOn)) - (record.slot === 0 ? 0 : charged);
    return [{ reported, unaccounted: reported - use.memory - provided }];
  });
  if (compared.length === 0) return undefined;
  return { reported: sum(compared.map(({ reported }) => reported)), unaccounted: sum(compared.map(({ unaccounted }) => unaccounted)) };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
