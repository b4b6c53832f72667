import {
  closeSync,
  fchmodSync,
  futimesSync,
  lutimesSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { systemReason } from '@nvidia-virtual/service/errors';
import { innermostPid } from '@nvidia-virtual/service/process-table';
import type { Allocation } from '../allocations/allocation.js';
import type { AllocationHost } from '../allocations/allocation-host.js';
import { NvmlMonitor } from '../gpus/nvml-monitor.js';
import { type DeviceReading, EMPTY_PAGE, makePage, PENDING_PAGE, parseDevices } from './page.js';

interface NvmlPagesOptions {
  readonly host: Pick<AllocationHost, 'installation' | 'backend' | 'launcher' | 'logger'>;
  /** Whether to read while no program uses a GPU. An open NVML blocks a driver update. */
  readonly always: boolean;
  allocations(): readonly Allocation[];
}

const EVERY_MS = 1000;
/** Interval of readings while no program uses a GPU. */
const IDLE_MS = 30_000;
/** NVML takes one to six samples per second of a busy GPU, so a mean is shown. */
const AVERAGED = 2;

interface Written {
  readonly file: string;
  readonly text: string;
  /** Time of the reading, in milliseconds. */
  readonly readAt: number;
}

/** Percent of the time in which kernels ran, by `PID UUID`. */
type Busy = ReadonlyMap<string, number>;

/**
 * Publishes what NVML in a container shows of its GPUs: one file for each allocation, beside its
 * socket. Containers have the directory read-only; nothing is read from them.
 */
export class NvmlPages {
  readonly #options: NvmlPagesOptions;
  readonly #monitor: NvmlMonitor<DeviceReading>;
  readonly #timer: NodeJS.Timeout;
  /** Keyed by the id of the allocation. */
  readonly #written = new Map<string, Written>();
  #reading: DeviceReading | undefined;
  #readAt = 0;
  #busy: Busy[] = [];
  #missing = false;
  /** True if the current failure to write was logged. */
  #told = false;

  constructor(options: NvmlPagesOptions) {
    this.#options = options;
    const { installation, backend, launcher, logger } = options.host;
    this.#monitor = new NvmlMonitor({
      ...{ installation, backend, launcher, logger },
      words: ['--answers', '--watch', String(EVERY_MS)],
      consequence: 'NVML cannot be read, so NVML in containers shows old values',
      parse: parseDevices,
      reading: (reading) => this.#take(reading),
      failed: () => {
        this.#missing = true;
      },
    });
    this.#monitor.wanted = true;
    this.#timer = setInterval(() => this.#refresh(), EVERY_MS).unref();
  }

  /** Writes the pages of all allocations. */
  publish(): void {
    for (const allocation of this.#options.allocations()) this.#write(allocation);
  }

  /** Removes the page of an allocation that ended. */
  remove(id: string): void {
    const written = this.#written.get(id);
    this.#written.delete(id);
    if (written) rmSync(written.file, { force: true });
  }

  /** The pages stay. */
  end(): void {
    clearInterval(this.#timer);
    this.#monitor.wanted = false;
  }

  get #wanted(): boolean {
    const used = () => this.#options.allocations().some(({ sessionCount }) => sessionCount > 0);
    return this.#options.always || Date.now() - this.#readAt > IDLE_MS || used();
  }

  #refresh(): void {
    this.#monitor.wanted = this.#wanted;
    this.publish();
  }

  #take(reading: DeviceReading): void {
    const elapsed = Math.max(EVERY_MS, Date.now() - this.#readAt) * 1000;
    const busy = new Map<string, number>();
    for (const { uuid, processes } of reading.gpus)
      for (const process of processes)
        busy.set(`${process.pid} ${uuid}`, Math.min(100, (process.busy * 100) / elapsed));
    this.#busy = [...this.#busy, busy].slice(-AVERAGED);
    this.#reading = reading;
    this.#readAt = Date.now();
    this.#missing = false;
    this.#refresh();
  }

  #busyOf(workerPid: number, gpu: string): number {
    const sum = this.#busy.reduce(
      (total, busy) => total + (busy.get(`${workerPid} ${gpu}`) ?? 0),
      0,
    );
    return Math.round(sum / Math.max(1, this.#busy.length));
  }

  #textOf({ specification: { gpus, shownAs, memory }, memoryUsed, sessions }: Allocation): string {
    if (!this.#reading) return this.#missing ? EMPTY_PAGE : PENDING_PAGE;
    const shown = sessions
      .filter(({ use }) => use.contexts > 0)
      .map(({ workerPid, use, session }) => ({
        workerPid,
        pid: innermostPid(session.record.client.pid),
        memory: use.memory,
      }));
    const allocation = { gpus, shownAs, memory, used: memoryUsed, sessions: shown };
    return makePage(this.#reading, allocation, (pid, gpu) => this.#busyOf(pid, gpu));
  }

  /** Writes a page that has changed, or dates it: NVML refuses to show values of long ago. */
  #write(allocation: Allocation): void {
    const { id } = allocation;
    const page = {
      file: pageOf(allocation),
      text: this.#textOf(allocation),
      readAt: this.#readAt,
    };
    const before = this.#written.get(id);
    if (before?.text === page.text && before.readAt === page.readAt) return;
    try {
      if (before?.text === page.text) date(page);
      else replace(page);
      this.#written.set(id, page);
      this.#told = false;
    } catch (error) {
      if (!this.#told)
        this.#options.host.logger.warn(
          { allocation: id },
          `${page.file} could not be written, so NVML in the container shows old values: ` +
            `${systemReason(error)}.`,
        );
      this.#told = true;
    }
  }
}

/** Beside the socket: nvml/page.h. */
function pageOf({ socketPath }: Allocation): string {
  return `${socketPath}.nvml`;
}

/** Follows no link: other users may write to the directory. */
function date({ file, readAt }: Written): void {
  lutimesSync(file, readAt / 1000, readAt / 1000);
}

/** Replaces the file atomically. Follows no link. */
function replace({ file, text, readAt }: Written): void {
  const unfinished = `${file}.new`;
  rmSync(unfinished, { force: true, recursive: true });
  const descriptor = openSync(unfinished, 'wx', 0o644);
  try {
    writeFileSync(descriptor, text);
    fchmodSync(descriptor, 0o644); // whatever the umask
    futimesSync(descriptor, readAt / 1000, readAt / 1000);
  } finally {
    closeSync(descriptor);
  }
  renameSync(unfinished, file);
}
