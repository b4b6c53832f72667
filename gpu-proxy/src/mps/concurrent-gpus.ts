import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { AllocationSpecification, GpuRecord } from '@nvidia-virtual/ledger';
import { ProxyError } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import type { Backend } from '../gpus/backend.js';
import type { Addon } from '../host/addon.js';
import type { Launcher } from '../host/launcher.js';
import { findMpsControl, MpsControl, type MpsProgram } from './control.js';
import { MpsDaemon } from './daemon.js';

interface ConcurrentGpusOptions {
  /** GPUs in concurrent mode, and GPUs with a remaining allocation in this mode. */
  readonly gpus: readonly GpuRecord[];
  readonly backend: Backend;
  /** Starts the daemon, which is a program of the host and outlives this process. */
  readonly launcher: Launcher;
  /** Subdirectory of the state directory, with a directory for each GPU. */
  readonly directory: string;
  /**
   * User id of the workers of all these GPUs; undefined: that of this process. MPS serves one user
   * at a time.
   */
  readonly uid: number | undefined;
  readonly addon: Addon;
  readonly logger: Logger;
  /** Called when the MPS of a GPU answers after a start or restart. */
  ready(): void;
  restarted(): void;
}

/** Options of a worker under MPS; native/worker/driver/environment.h. */
export interface MpsClient {
  readonly pipes: string;
  /** Percent of the GPU's threads. */
  readonly threads: number;
  /** Bytes, contexts included; 0: no limit. */
  readonly memory: number;
}

/**
 * The GPUs of a node in concurrent mode, on which kernels of all allocations run in parallel. Each
 * GPU has its own MPS daemon.
 */
export class ConcurrentGpus {
  readonly #daemons: ReadonlyMap<string, MpsDaemon>;

  /** @throws ProxyError MPS_MISSING, SOCKET_PATH_LONG, STATE_NOT_USABLE */
  constructor(options: ConcurrentGpusOptions) {
    const { gpus, backend, directory } = options;
    const executable = findMpsControl(backend.driver, options.launcher);
    const [first] = gpus;
    if (first && !executable)
      throw new ProxyError('MPS_MISSING', { gpu: first.index, driver: backend.driver });
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
    this.#daemons = new Map(
      gpus.map((gpu) => [
        gpu.uuid,
        new MpsDaemon({ ...common, gpu, directory: path.join(directory, wordOf(gpu)) }),
      ]),
    );
  }

  /** Whether workers of an allocation with this GPU may start. */
  ready([gpu = '']: readonly string[]): boolean {
    return this.#daemons.get(gpu)?.ready ?? false;
  }

  /**
   * MPS settings of a worker of this allocation. A `fixed` share limits the threads of each
   * process. `burst` has no limit, because a limit would only leave threads idle. The workers
   * enforce the memory quota over all processes; the MPS memory limit is a second barrier.
   */
  clientOf(
    { gpus: [gpu = ''], policy, share, memory }: AllocationSpecification,
    contextMemory: number,
  ): MpsClient | undefined {
    const daemon = this.#daemons.get(gpu);
    if (!daemon) return undefined;
    return {
      pipes: daemon.pipes,
      threads: policy === 'fixed' ? share : 100,
      memory: memory === 0 ? 0 : memory + contextMemory,
    };
  }

  /** The reason why programs must wait; undefined: they need not. */
  get trouble(): string | undefined {
    const away = [...this.#daemons.values()].find(({ ready }) => !ready);
    return (
      away &&
      `The MPS control daemon of GPU ${away.gpu.index} does not answer: it is being started.`
    );
  }

  /**
   * @param inUse GPUs whose MPS continues, for running programs and the next gpu-proxy. The MPS of
   * other GPUs is terminated.
   */
  leave(inUse: ReadonlySet<string>): void {
    for (const [gpu, daemon] of this.#daemons) {
      if (inUse.has(gpu)) daemon.leave();
      else daemon.end();
    }
  }
}

/** Terminates the MPS of GPUs that left concurrent mode or are missing. */
function endOthers(program: MpsProgram, { directory, gpus }: ConcurrentGpusOptions): void {
  const wanted = new Set(gpus.map(wordOf));
  for (const name of readdirSync(directory).filter((each) => !wanted.has(each))) {
    new MpsControl(program, path.join(directory, name), '').quit();
    rmSync(path.join(directory, name), { recursive: true, force: true });
  }
}

/** Directory name of a GPU. Short, because the path of a Unix socket is limited. */
function wordOf({ uuid }: GpuRecord): string {
  return uuid.replace(/^GPU-/, '').replaceAll('-', '').slice(0, 16);
}
