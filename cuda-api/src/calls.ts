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
 * What the GPU does because of a call. `marker`: it passes a place in a stream, as for an event.
 * `nothing`: memory, a question.
 */
export const SUBMISSIONS = ['kernel', 'copy', 'memset', 'marker', 'nothing'] as const;
type Submission = (typeof SUBMISSIONS)[number];

/**
 * Memory of the GPU, or pinned memory of the host, that a call takes in the worker: the worker
 * charges it before it asks the driver.
 */
export const ALLOCATES = ['nothing', 'device', 'host'] as const;
type Allocates = (typeof ALLOCATES)[number];

export interface Parameter {
  type: string;
  name: string;
  place: Located;
  direction: Direction;
  /** A null pointer is allowed. */
  optional: boolean;
  /** The parameter that says how many elements an `in` or `out` has; without it there is one. */
  count?: string;
  /** The handle ends when the call succeeds. */
  destroys: boolean;
  /** The parameter whose handle ends this new one with itself. */
  owner?: string;
}

export interface Call {
  name: string;
  place: Located;
  /** What cuGetProcAddress is asked for, and from which version on this prototype is the answer. */
  names: { name: string; version: number }[];
  /** The variant for the per-thread default stream, and the version from which it is handed out. */
  perThread?: { suffix: 'ptsz' | 'ptds'; version: number };
  parameters: Parameter[];
  mode: Mode;
  /** For mode "constant": what it returns, whatever its arguments are, as the driver does. */
  result?: string;
  /** For mode "refused": the reason, as a clause that the user reads. */
  why?: string;
  /** For mode "same": the call of a later version that does what this one does. */
  same?: string;
  clientCustom: boolean;
  workerCustom: boolean;
  frameCustom: boolean;
  ordered: boolean;
  /**
   * What it gives the GPU to do. Required where a stream or a per-thread variant says that it may
   * be something.
   */
  submits?: Submission;
  /**
   * It gives the GPU work that needs a window of its time: always, only when it copies little, or
   * as a marker.
   */
  window?: Window;
  /** What memory it takes; without it, none. */
  allocates?: Allocates;
  /** The header of the toolkit that declares it, if not cuda.h. */
  header?: string;
  /** Exists between interposer and worker only. */
  internal: boolean;
}

/** It returns one result and does nothing. */
export function doesNothing(call: Call): boolean {
  return call.mode === 'unsupported' || call.mode === 'refused' || call.mode === 'constant';
}

/** The call crosses to the worker. */
export function travels(call: Call): boolean {
  return call.mode === 'async' || call.mode === 'call' || call.mode === 'wait';
}

/** The GPU works because of it. */
export function givesWork(call: Call): boolean {
  return call.submits !== undefined && call.submits !== 'nothing';
}

/** Encoder and decoder are made by the generator. */
export function hasFrame(call: Call): boolean {
  return travels(call) && !call.frameCustom;
}

/** The exported symbol calls a body in the interposer that is written by hand. */
export function hasInterposerBody(call: Call): boolean {
  return !call.internal && (call.clientCustom || call.mode === 'local');
}

export function perThreadSymbol(call: Call): string | null {
  return call.perThread ? `${call.name}_${call.perThread.suffix}` : null;
}

/** The parameter that a per-thread variant replaces when it is the default stream. */
export function streamParameter(call: Call): Parameter | undefined {
  return call.parameters.find((parameter) => parameter.type === 'CUstream');
}

/** The parameters that say how large something is. */
export function sizeParameters(call: Call): Parameter[] {
  return call.parameters.filter((parameter) => parameter.type === 'size_t');
}

/**
 * A body written by hand learns the default stream from a last argument where no parameter says it.
 */
export function takesDefaultStream(call: Call): boolean {
  return (
    call.perThread !== undefined && streamParameter(call) === undefined && hasInterposerBody(call)
  );
}
