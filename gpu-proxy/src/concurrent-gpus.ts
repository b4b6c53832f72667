import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { AllocationSpecification, GpuRecord } from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import type { Addon } from './addon.js';
import type { Backend } from './backend.js';
import { ProxyError } from './errors.js';
import type { Launcher } from './launcher.js';
import { findMpsControl, MpsControl, type MpsProgram } from './mps-control.js';
import { MpsDaemon } from './mps-daemon.js';

export interface ConcurrentGpusOptions {
  /** Those in concurrent mode, and those that still have an allocation in it. */
  readonly gpus: readonly GpuRecord[];
  readonly backend: Backend;
  /** The daemon outlives this process, and is the host's program. */
  readonly launcher: Launcher;
  /** Beneath the state directory; each GPU has a directory in it. */
  readonly directory: string;
  /** As whom the workers of all these GPUs run; undefined: as this process. MPS serves one user at a time. */
  readonly uid: number | undefined;
  readonly addon: Addon;
  readonly logger: Logger;
  /** The MPS of a GPU answers, for the first time or again. */
  ready(): void;
  restarted(): void;
}

/** What a worker under MPS is told; native/worker/environment.h. */
export interface MpsClient {
  readonly pipes: string;
  /** Percent of the GPU's threads. */
  readonly threads: number;
  /** Bytes, contexts included; 0: no limit. */
  readonly memory: number;
}

/** The GPUs of a node on which kernels of all allocations run side by side, each under an MPS of its own. */
export class ConcurrentGpus {
  readonly #daemons: ReadonlyMap<string, MpsDaemon>;

  /** @throws ProxyError MPS_MISSING, SOCKET_PATH_LONG, STATE_NOT_USABLE */
  constructor(options: ConcurrentGpusOptions) {
    const { gpus, backend, directory } = options;
    const executable = findMpsControl(backend.driver, options.launcher);
    const [first] = gpus;
    if (first && !executable) throw new ProxyError('MPS_MISSING', { gpu: first.index, driver: backend.driver });
    if (!executable) {
      this.#daemons = new Map();
      return;
    }
    mkdirSync(directory, { recursive: true, mode: 0o711 });
    const { uid, addon, logger, launcher } = options;
    const program = { executable, driver: backend.driver, launcher };
    endOthers(program, options);
    const [ready, restarted] = [() => options.ready(), () => options.restarted()];
    const common = { ...program, uid, addon, logger, ready, restarted };
    this.#daemons = new Map(gpus.map((gpu) => [gpu.uuid, new MpsDaemon({ ...common, gpu, directory: path.join(directory, wordOf(gpu)) })]));
  }

  /** Whether workers of an allocation with this GPU may start. */
  ready([gpu = '']: readonly string[]): boolean {
    return this.#daemons.get(gpu)?.ready ?? false;
  }

  /**
   * How a worker of this allocation joins the others. A `fixed` share is a limit of threads for each of its processes; `burst` may have all,
   * since nobody else would get what it is denied. The memory quota is kept by the worker, over all processes; this limit is a second wall.
   */
  clientOf({ gpus: [gpu = ''], policy, share, memory }: AllocationSpecification, contextMemory: number): MpsClient | undefined {
    const daemon = this.#daemons.get(gpu);
    if (!daemon) return undefined;
    return { pipes: daemon.pipes, threads: policy === 'fixed' ? share : 100, memory: memory === 0 ? 0 : memory + contextMemory };
  }

  /** Why programs have to wait; undefined when none has to. */
  get trouble(): string | undefined {
    const away = [...this.#daemons.values()].find(({ ready }) => !ready);
    return away && `The MPS control daemon of GPU ${away.gpu.index} does not answer: it is being started.`;
  }

  /** @param inUse GPUs whose MPS is to go on, for the programs there and for the next proxy; that of the others ends. */
  leave(inUse: ReadonlySet<string>): void {
    for (const [gpu, daemon] of this.#daemons) {
      if (inUse.has(gpu)) daemon.leave();
      else daemon.end();
    }
  }
}

/** Of GPUs that are no longer in this mode, or no longer there. */
function endOthers(program: MpsProgram, { directory, gpus }: ConcurrentGpusOptions): void {
  const wanted = new Set(gpus.map(wordOf));
  for (const name of readdirSync(directory).filter((each) => !wanted.has(each))) {
    new MpsControl(program, path.join(directory, name), '').quit();
    rmSync(path.join(directory, name), { recursive: true, force: true });
  }
}

/** Short, since sockets lie in it. */
function wordOf({ uuid }: GpuRecord): string {
  return uuid.replace(/^GPU-/, '').replaceAll('-', '').slice(0, 16);
}
