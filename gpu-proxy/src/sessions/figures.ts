import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';

/**
 * Counters of a session: a small file that gpu-proxy creates and the worker updates.
 * native/worker/reports/figures.h defines the layout.
 */
const MAGIC = 0x4e564631; // "NVF1"
const VERSION = 1;
const FILE_BYTES = 4096;
const ROUND_TRIPS_OFFSET = 128;
const ROUND_TRIP_BUCKETS = 32;

export interface Figures {
  readonly launches: number;
  readonly bytesCopied: {
    readonly hostToDevice: number;
    readonly deviceToHost: number;
    readonly deviceToDevice: number;
  };
  readonly memsets: number;
  /** Errors that make the session unusable, such as an illegal address. */
  readonly faults: number;
  /** Open contexts. */
  readonly contexts: number;
  /** Threads of the program that currently use CUDA. */
  readonly threads: number;
  /** Threads of the program whose next call waits because the session is suspended. */
  readonly waiting: number;
  /** Bytes of pinned host memory. */
  readonly pinned: number;
  /** Time spent waiting for the arbiter's windows. */
  readonly gateNanoseconds: number;
  /**
   * Histogram: element i counts round trips that took the worker 2^i to 2^(i+1) nanoseconds. One in
   * 64 is timed as a sample.
   */
  readonly roundTrips: readonly number[];
}

/** Creates the file, which must not exist. */
export function createFigures(path: string): void {
  const fd = openSync(path, 'wx', 0o600);
  try {
    const header = Buffer.alloc(8);
    header.writeUInt32LE(MAGIC, 0);
    header.writeUInt32LE(VERSION, 4);
    ftruncateSync(fd, FILE_BYTES);
    writeSync(fd, header, 0, header.length, 0);
  } finally {
    closeSync(fd);
  }
}

/** @throws a system error if the file does not exist */
export function readFigures(path: string): Figures {
  return figuresIn(Buffer.concat([readFileSync(path), Buffer.alloc(FILE_BYTES)]));
}

/** Workers are not trusted: each field can have any value, but is always a number. */
function figuresIn(bytes: Buffer): Figures {
  const word = (offset: number) => Number(bytes.readBigUInt64LE(offset));
  return {
    launches: word(8),
    bytesCopied: { hostToDevice: word(16), deviceToHost: word(24), deviceToDevice: word(32) },
    memsets: word(40),
    faults: word(48),
    contexts: word(56),
    threads: word(64),
    waiting: word(72),
    pinned: word(80),
    gateNanoseconds: word(88),
    roundTrips: Array.from({ length: ROUND_TRIP_BUCKETS }, (_, i) =>
      word(ROUND_TRIPS_OFFSET + 8 * i),
    ),
  };
}

/** The figures of a new session: all zero. */
export const NO_FIGURES = figuresIn(Buffer.alloc(FILE_BYTES));
