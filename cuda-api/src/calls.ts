import type { Located } from './source.js';

export const MODES = [
  'unsupported',
  'refused',
  'constant',
  'local',
  'same',
  'async',
  'call',
  'wait',
] as const;
export type Mode = (typeof MODES)[number];

const DIRECTIONS = ['value', 'out', 'in', 'inout', 'string', 'pointer'] as const;
export type Direction = (typeof DIRECTIONS)[number];

export const WINDOWS = ['always', 'small', 'marker'] as const;
type Window = (typeof WINDOWS)[number];

/**
 * Work that a call submits to the GPU. `marker`: a position in a stream, as for an event.
 * `nothing`: the call uses no GPU time, for example memory management and queries.
 */
export const SUBMISSIONS = ['kernel', 'copy', 'memset', 'marker', 'nothing'] as const;
type Submission = (typeof SUBMISSIONS)[number];

/**
 * GPU memory or pinned host memory that a call allocates. The worker charges it before it calls
 * the driver.
 */
export const ALLOCATES = ['nothing', 'device', 'host'] as const;
type Allocates = (typeof ALLOCATES)[number];

/** The least that a call needs: any real GPU, or one of a compute capability. */
export const BACKENDS = ['real', 'real 10.0'] as const;
type Backend = (typeof BACKENDS)[number];

export interface Parameter {
  type: string;
  name: string;
  place: Located;
  direction: Direction;
  /** Whether a null pointer is allowed. */
  optional: boolean;
  /** The parameter with the number of elements of an `in` or `out`. Undefined: one element. */
  count?: string;
  /** Whether a successful call destroys the handle. */
  destroys: boolean;
  /** The parameter with the owner: when its handle is destroyed, this new one is too. */
  owner?: string;
}

export interface Call {
  name: string;
  place: Located;
  /** Names for cuGetProcAddress, each with the first version that has this prototype. */
  names: { name: string; version: number }[];
  /** The variant for the per-thread default stream, and its first version. */
  perThread?: { suffix: 'ptsz' | 'ptds'; version: number };
  parameters: Parameter[];
  mode: Mode;
  /** For mode "constant": what it returns, whatever its arguments are, as the driver does. */
  result?: string;
  /** For mode "refused": the reason, as a clause that the user reads. */
  why?: string;
  /** For mode "same": the equivalent call of a later version. */
  same?: string;
  clientCustom: boolean;
  workerCustom: boolean;
  frameCustom: boolean;
  ordered: boolean;
  /** GPUs that have what the call is about. Undefined: all, and the simulated one. */
  backend?: Backend;
  /**
   * Work that it submits to the GPU. Required for calls with a stream or a per-thread variant.
   */
  submits?: Submission;
  /**
   * Whether its work needs an open window: always, only for small copies, or as a marker.
   */
  window?: Window;
  /** Kind of memory that it allocates. Undefined: none. */
  allocates?: Allocates;
  /** Toolkit header that declares it, if not cuda.h, after those that it requires. */
  header?: string;
  /** Whether it exists only between interposer and worker. */
  internal: boolean;
}

/** Whether the call only returns a fixed result. */
export function doesNothing(call: Call): boolean {
  return call.mode === 'unsupported' || call.mode === 'refused' || call.mode === 'constant';
}

/** Whether the call is sent to the worker. */
export function travels(call: Call): boolean {
  return call.mode === 'async' || call.mode === 'call' || call.mode === 'wait';
}

/** Whether it submits work to the GPU. */
export function givesWork(call: Call): boolean {
  return call.submits !== undefined && call.submits !== 'nothing';
}

/** Whether encoder and decoder are generated. */
export function hasFrame(call: Call): boolean {
  return travels(call) && !call.frameCustom;
}

/** Whether the exported symbol calls a hand-written body in the interposer. */
export function hasInterposerBody(call: Call): boolean {
  return !call.internal && (call.clientCustom || call.mode === 'local');
}

export function perThreadSymbol(call: Call): string | null {
  return call.perThread ? `${call.name}_${call.perThread.suffix}` : null;
}

/** The stream parameter. A per-thread variant replaces a default stream in it. */
export function streamParameter(call: Call): Parameter | undefined {
  return call.parameters.find((parameter) => parameter.type === 'CUstream');
}

/** The parameters that are sizes. */
export function sizeParameters(call: Call): Parameter[] {
  return call.parameters.filter((parameter) => parameter.type === 'size_t');
}

/** Whether a hand-written body needs the default stream as an extra last argument. */
export function takesDefaultStream(call: Call): boolean {
  return (
    call.perThread !== undefined && streamParameter(call) === undefined && hasInterposerBody(call)
  );
}
