import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';

/**
 * What a session does, in a small file that the proxy makes and its worker counts in. The layout is the one of native/worker/figures.h.
 */
const MAGIC = 0x4e564631; // "NVF1"
const VERSION = 1;
const FILE_BYTES = 4096;
const ROUND_TRIPS_OFFSET = 128;
const ROUND_TRIP_BUCKETS = 32;

export interface Figures {
  readonly launches: number;
  readonly bytesCopied: { readonly hostToDevice: number; readonly deviceToHost: number; readonly deviceToDevice: number };
  readonly memsets: number;
  /** Errors after which nothing of the session works any more: an illegal address, say. */
  readonly faults: number;
  /** Now. */
  readonly contexts: number;
  /** Threads of the program that use CUDA now. */
  readonly threads: number;
  /** Bytes of pinned host memory, now. */
  readonly pinned: number;
  /** Waited for the arbiter's windows. */
  readonly gateNanoseconds: number;
  /** Element i: how many round trips took the worker 2^i to 2^(i+1) nanoseconds. One in 64 is timed, and stands for all. */
  readonly roundTrips: readonly number[];
}

/** Makes the file; it must not exist. */
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

/** @throws when the file is gone. */
export function readFigures(path: string): Figures {
  return figuresIn(Buffer.concat([readFileSync(path), Buffer.alloc(FILE_BYTES)]));
}

/** A worker is not trusted: what it wrote may be any number, but each is one. */
function figuresIn(bytes: Buffer): Figures {
  const word = (offset: number) => Number(bytes.readBigUInt64LE(offset));
  return {
    launches: word(8),
    bytesCopied: { hostToDevice: word(16), deviceToHost: word(24), deviceToDevice: word(32) },
    memsets: word(40),
    faults: word(48),
    contexts: word(56),
    threads: word(64),
    pinned: word(80),
    gateNanoseconds: word(88),
    roundTrips: Array.from({ length: ROUND_TRIP_BUCKETS }, (_, i) => word(ROUND_TRIPS_OFFSET + 8 * i)),
  };
}

/** Of a session of which nothing was read yet. */
export const NO_FIGURES = figuresIn(Buffer.alloc(FILE_BYTES));
