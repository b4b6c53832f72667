import type { SessionRecord } from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import type { Backend } from '../gpus/backend.js';
import type { WorkerExit } from '../workers/worker.js';

/** As in native/worker/reports/reported_names.h. Checked again: workers are not trusted. */
const MOST_UNSUPPORTED = 512;
const CALL = /^[A-Za-z0-9_ ]{1,128}$/;
/** Comma-separated names; the maximum count of names of maximum length. */
const CALLS = /^[A-Za-z0-9_ ,]+$/;
const MOST_OF_CALLS = MOST_UNSUPPORTED * 129;
/** Debounce: names requested within this time share one log line. */
const COLLECT_MS = 1000;

/** A report of a worker: one JSON object per line. */
export type Report =
  | { event: 'started'; pid: number; program: string; gpu: GpuIdentity; driverVersion: number }
  | { event: 'refused'; sentence: string }
  | { event: 'unsupported'; call: string }
  | NotFound
  | OverLimit
  | { event: 'ended'; reason: string; peakMemory: number; launches: number; fault?: string };

/**
 * Names that cuGetProcAddress did not find, separated by commas. A CUDA runtime requests all names
 * of its table, even if the program does not need them.
 */
interface NotFound {
  event: 'notFound';
  by: 'runtime' | 'program';
  calls: string;
}

/**
 * A request of the program exceeded a limit of its allocation. Repeated at intervals while requests
 * keep failing.
 */
type OverLimit =
  | { event: 'overQuota'; asked: number; used: number; limit: number }
  | { event: 'overPinned'; asked: number; limit: number }
  | { event: 'overHandles' | 'overThreads'; limit: number }
  | { event: 'overrun'; seconds: number };

const LIMITED: Readonly<Record<OverLimit['event'], string>> = {
  overQuota: 'the memory quota',
  overPinned: 'the limit of pinned memory',
  overHandles: 'the limit of handles',
  overThreads: 'the limit of threads',
  overrun: 'the limit of an overrun',
};

interface GpuIdentity {
  readonly name: string;
  readonly uuid: string;
  readonly memory: number;
}

/**
 * One client process and its worker: identity, GPU, duration, resource use, and how it ended.
 */
export class Session {
  gpu: GpuIdentity | undefined;
  refusal: string | undefined;
  /** Unsupported calls that the program made. */
  readonly unsupported = new Set<string>();
  /** Unsupported names that the program or its CUDA runtime requested from cuGetProcAddress. */
  readonly notFound = { program: new Set<string>(), runtime: new Set<string>() };
  peakMemory = 0;
  /** Undefined if the worker died before it could report. */
  launches: number | undefined;
  fault: string | undefined;
  /** How it ended; undefined while it is running. */
  ended: string | undefined;
  /** True if the worker crashed or was killed. */
  died = false;
  /** True if gpu-proxy killed the worker. */
  killed = false;
  /** Duration of the session. Set at its end. */
  seconds = 0;
  /**
   * Time between the end of the client, or gpu-proxy's kill, and the worker's exit, which frees the
   * memory. Undefined if the worker exited first.
   */
  secondsToReturn: number | undefined;
  /** True after the first report, which follows the client's hello. */
  introduced = false;
  #reason: string | undefined;
  #askedFor: string[] = [];
  #collecting: NodeJS.Timeout | undefined;

  /** @param logger adds allocation and session to each line. */
  constructor(
    public record: SessionRecord,
    readonly backend: Backend,
    readonly logger: Logger,
  ) {}

  apply(report: Report): void {
    this.introduced = true;
    switch (report.event) {
      case 'started':
        this.gpu = report.gpu;
        break;
      case 'refused':
        this.refusal = report.sentence;
        this.logger.warn({ pid: this.record.client.pid }, report.sentence);
        break;
      case 'unsupported':
        this.#noteUnsupported(report.call);
        break;
      case 'notFound':
        this.#noteNotFound(report);
        break;
      case 'overQuota':
      case 'overPinned':
      case 'overHandles':
      case 'overThreads':
      case 'overrun':
        this.logger.info(
          { ...report, event: undefined, pid: this.record.client.pid },
          `${LIMITED[report.event]} was reached`,
        );
        break;
      case 'ended':
        this.#reason = report.reason;
        this.peakMemory = Math.max(this.peakMemory, report.peakMemory);
        this.launches = report.launches;
        this.fault = report.fault;
        break;
    }
  }

  /**
   * Records the worker's exit and logs the session. If the exit status is unknown, the worker's
   * reports decide whether it crashed.
   * @param endBegun when the end of the client was noticed or gpu-proxy killed the session; in
   * milliseconds, as in Date.now().
   */
  end(exit: WorkerExit | undefined, peakMemory: number, endBegun?: number): void {
    this.#logAskedFor();
    const now = Date.now();
    this.peakMemory = Math.max(this.peakMemory, peakMemory);
    this.seconds = (now - Date.parse(this.record.startedAt)) / 1000;
    if (endBegun !== undefined) this.secondsToReturn = Math.max(0, now - endBegun) / 1000;
    const orderly = this.#reason !== undefined || this.refusal !== undefined;
    this.died = exit
      ? exit.signal !== null || (exit.status !== 0 && this.refusal === undefined)
      : this.gpu !== undefined && !orderly;
    this.ended = this.died
      ? describeDeath(exit)
      : (this.#reason ?? (this.refusal ? 'refused' : 'worker ended'));
    this.#log();
  }

  /**
   * False if the connection never became a session: a probe, or a client that disconnected at once.
   */
  get opened(): boolean {
    return this.gpu !== undefined || this.refusal !== undefined || this.died;
  }

  #log(): void {
    const line = {
      pid: this.record.client.pid,
      uid: this.record.client.uid,
      program: this.record.client.program,
      backend: this.backend.kind,
      gpu: this.gpu?.name,
      uuid: this.gpu?.uuid,
      seconds: this.seconds,
      secondsToReturn: this.secondsToReturn,
      peakMemory: this.peakMemory,
      launches: this.launches,
      fault: this.fault,
      refused: this.refusal,
      ended: this.ended,
    };
    if (this.died) this.logger.error(line, 'session');
    else if (this.opened) this.logger.info(line, 'session');
    else this.logger.debug(line, 'session');
  }

  #noteUnsupported(call: string): void {
    if (this.unsupported.has(call) || this.unsupported.size >= MOST_UNSUPPORTED) return;
    this.unsupported.add(call);
    this.logger.warn(
      { pid: this.record.client.pid, call },
      `${call} is not supported and answered CUDA_ERROR_NOT_SUPPORTED`,
    );
  }

  #noteNotFound({ by, calls }: NotFound): void {
    const known = this.notFound[by];
    const news = [...new Set(calls.split(','))].filter(
      (call) => CALL.test(call) && !known.has(call),
    );
    const taken = news.slice(0, MOST_UNSUPPORTED - known.size);
    if (taken.length === 0) return;
    for (const call of taken) known.add(call);
    if (by === 'runtime') {
      const sentence =
        `the CUDA runtime of the program knows calls that are not supported ` +
        `yet: ${summarizeCalls(taken)}`;
      this.logger.info({ pid: this.record.client.pid, calls: taken.join(',') }, sentence);
      return;
    }
    this.#askedFor.push(...taken);
    this.#collecting ??= setTimeout(() => this.#logAskedFor(), COLLECT_MS).unref();
  }

  /** Logs the collected names in one line: a library requests many names at once. */
  #logAskedFor(): void {
    clearTimeout(this.#collecting);
    this.#collecting = undefined;
    const calls = this.#askedFor.splice(0);
    if (calls.length > 0)
      this.logger.warn(
        { pid: this.record.client.pid },
        `asked for and not supported: ${calls.join(', ')}`,
      );
  }
}

/** Groups names by prefix: `cuGraph* (3), cuMulticastCreate`. */
export function summarizeCalls(calls: Iterable<string>): string {
  const families = new Map<string, string[]>();
  for (const call of calls) {
    const family = /^cu[A-Z][a-z0-9]*/.exec(call)?.[0] ?? call;
    families.set(family, [...(families.get(family) ?? []), call]);
  }
  const shown = [...families].map(([family, names]) =>
    names.length > 1 ? `${family}* (${names.length})` : names[0],
  );
  return shown.sort().join(', ');
}

function describeDeath(exit: WorkerExit | undefined): string {
  if (!exit)
    return (
      'worker died: its exit status is unknown, because the gpu-proxy that started it ' +
      'had ended'
    );
  return exit.signal
    ? `worker died: signal ${exit.signal}`
    : `worker died: exit status ${exit.status}`;
}

/**
 * Parses a line of a worker's report; undefined if it is malformed. Workers are not trusted: every
 * field in use is checked.
 */
export function parseReport(line: string): Report | undefined {
  const value = parseObject(line);
  if (!value) return undefined;
  const text = (key: string) => typeof value[key] === 'string';
  const number = (key: string) => typeof value[key] === 'number';
  switch (value['event']) {
    case 'started':
      return isGpu(value['gpu']) && number('pid') && text('program')
        ? (value as Report)
        : undefined;
    case 'refused':
      return text('sentence') ? (value as Report) : undefined;
    case 'unsupported':
      return text('call') && CALL.test(value['call'] as string) ? (value as Report) : undefined;
    case 'notFound':
      return isNotFound(value) ? (value as unknown as Report) : undefined;
    case 'overQuota':
      return number('asked') && number('used') && number('limit') ? (value as Report) : undefined;
    case 'overPinned':
      return number('asked') && number('limit') ? (value as Report) : undefined;
    case 'overHandles':
    case 'overThreads':
      return number('limit') ? (value as Report) : undefined;
    case 'overrun':
      return number('seconds') ? (value as Report) : undefined;
    case 'ended':
      return text('reason') && number('peakMemory') && number('launches')
        ? (value as Report)
        : undefined;
    default:
      return undefined;
  }
}

function isNotFound({ by, calls }: Record<string, unknown>): boolean {
  const known = by === 'runtime' || by === 'program';
  return known && typeof calls === 'string' && calls.length <= MOST_OF_CALLS && CALLS.test(calls);
}

function isGpu(value: unknown): boolean {
  const gpu = value as Partial<GpuIdentity> | null | undefined;
  return (
    typeof gpu?.name === 'string' && typeof gpu.uuid === 'string' && typeof gpu.memory === 'number'
  );
}

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
