import type { SessionRecord } from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import type { Backend } from './backend.js';
import type { WorkerExit } from './worker.js';

/** As many as a worker reports, which is not trusted blindly: native/worker/unsupported_calls.h. */
const MOST_UNSUPPORTED = 512;
const CALL = /^[A-Za-z0-9_ ]{1,128}$/;

/** What a worker says about itself, one JSON object a line. */
export type Report =
  | { event: 'started'; pid: number; program: string; gpu: GpuIdentity; driverVersion: number }
  | { event: 'refused'; sentence: string }
  | { event: 'unsupported'; call: string }
  | OverLimit
  | { event: 'ended'; reason: string; peakMemory: number; launches: number; fault?: string };

/** The program was refused something: what its allocation may have is used up. Told again after a while, for as long as it goes on. */
export type OverLimit =
  | { event: 'overQuota'; asked: number; used: number; limit: number }
  | { event: 'overPinned'; asked: number; limit: number }
  | { event: 'overHandles' | 'overThreads'; limit: number };

const LIMITED: Readonly<Record<OverLimit['event'], string>> = {
  overQuota: 'the memory quota',
  overPinned: 'the limit of pinned memory',
  overHandles: 'the limit of handles',
  overThreads: 'the limit of threads',
};

export interface GpuIdentity {
  readonly name: string;
  readonly uuid: string;
  readonly memory: number;
}

/** One client process and the worker that serves it: who, where, how long, how much, and how it ended. */
export class Session {
  gpu: GpuIdentity | undefined;
  refusal: string | undefined;
  readonly unsupported = new Set<string>();
  peakMemory = 0;
  /** Unknown for a worker that died before it could tell. */
  launches: number | undefined;
  fault: string | undefined;
  /** How it ended; undefined while it goes on. */
  ended: string | undefined;
  /** True when the worker did not come to an orderly end. */
  died = false;
  /** gpu-proxy ended it, or its worker that would not end. */
  killed = false;
  /** How long it lasted, once it has ended. */
  seconds = 0;
  /** How long its memory stayed taken after its client had gone or gpu-proxy had ended it; undefined when the worker ended before either. */
  secondsToReturn: number | undefined;
  /** Something was heard of its worker: the client has said hello. */
  introduced = false;
  #reason: string | undefined;

  /** @param logger names allocation and session in each line. */
  constructor(
    readonly record: SessionRecord,
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
      case 'overQuota':
      case 'overPinned':
      case 'overHandles':
      case 'overThreads':
        this.logger.info({ ...report, event: undefined, pid: this.record.client.pid }, `${LIMITED[report.event]} was reached`);
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
   * The worker is gone: says so in one line. What nobody saw is judged by what it reported.
   * @param endBegun when its client was seen gone or gpu-proxy ended it, in milliseconds as Date.now() has them.
   */
  end(exit: WorkerExit | undefined, peakMemory: number, endBegun?: number): void {
    const now = Date.now();
    this.peakMemory = Math.max(this.peakMemory, peakMemory);
    this.seconds = (now - Date.parse(this.record.startedAt)) / 1000;
    if (endBegun !== undefined) this.secondsToReturn = Math.max(0, now - endBegun) / 1000;
    const orderly = this.#reason !== undefined || this.refusal !== undefined;
    this.died = exit ? exit.signal !== null || (exit.status !== 0 && this.refusal === undefined) : this.gpu !== undefined && !orderly;
    this.ended = this.died ? describeDeath(exit) : (this.#reason ?? (this.refusal ? 'refused' : 'worker ended'));
    this.#log();
  }

  /** A connection that never became a session (a probe, or a client that went away at once) is no news. */
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
    this.logger.warn({ pid: this.record.client.pid, call }, `${call} is not supported yet and answered CUDA_ERROR_NOT_SUPPORTED`);
  }
}

function describeDeath(exit: WorkerExit | undefined): string {
  if (!exit) return 'worker died: nobody saw how, the gpu-proxy that had started it was gone';
  return exit.signal ? `worker died: signal ${exit.signal}` : `worker died: exit status ${exit.status}`;
}

/** A report line of a worker, or undefined for one that is no report. Workers are not trusted blindly: every field is checked. */
export function parseReport(line: string): Report | undefined {
  const value = parseObject(line);
  if (!value) return undefined;
  const text = (key: string) => typeof value[key] === 'string';
  const number = (key: string) => typeof value[key] === 'number';
  switch (value['event']) {
    case 'started':
      return isGpu(value['gpu']) && number('pid') && text('program') ? (value as Report) : undefined;
    case 'refused':
      return text('sentence') ? (value as Report) : undefined;
    case 'unsupported':
      return text('call') && CALL.test(value['call'] as string) ? (value as Report) : undefined;
    case 'overQuota':
      return number('asked') && number('used') && number('limit') ? (value as Report) : undefined;
    case 'overPinned':
      return number('asked') && number('limit') ? (value as Report) : undefined;
    case 'overHandles':
    case 'overThreads':
      return number('limit') ? (value as Report) : undefined;
    case 'ended':
      return text('reason') && number('peakMemory') && number('launches') ? (value as Report) : undefined;
    default:
      return undefined;
  }
}

function isGpu(value: unknown): boolean {
  const gpu = value as Partial<GpuIdentity> | null | undefined;
  return typeof gpu?.name === 'string' && typeof gpu.uuid === 'string' && typeof gpu.memory === 'number';
}

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
