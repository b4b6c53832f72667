import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';

/**
 * What the worker of a session counts: a small file that the proxy makes and the worker maps. The layout is the one of
 * native/worker/figures.h; numbers are little-endian.
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
  readonly faults: number;
  /** Alive now. */
  readonly contexts: number;
  readonly threads: number;
  readonly handles: number;
  /** Bytes of host memory. */
  readonly pinnedMemory: number;
  /** Nanoseconds at the arbiter's gate. */
  readonly waited: number;
  /** Element i counts round trips that took the worker 2^i to 2^(i+1) ns. */
  readonly roundTrips: readonly number[];
}

/** Makes the file; it must not exist. */
export function makeFigures(path: string): void {
  const fd = openSync(path, 'wx', 0o600);
  const header = Buffer.alloc(8);
  header.writeUInt32LE(MAGIC, 0);
  header.writeUInt32LE(VERSION, 4);
  ftruncateSync(fd, FILE_BYTES);
  writeSync(fd, header);
  closeSync(fd);
}

/** @throws when the file is missing or is none of these. */
export function readFigures(path: string): Figures {
  const file = readFileSync(path);
  if (file.length < FILE_BYTES || file.readUInt32LE(0) !== MAGIC || file.readUInt32LE(4) !== VERSION)
    throw new Error(`${path} is no figures file of this version`);
  const number = (offset: number) => Number(file.readBigUInt64LE(offset));
  return {
    launches: number(8),
    bytesCopied: { hostToDevice: number(16), deviceToHost: number(24), deviceToDevice: number(32) },
    memsets: number(40),
    faults: number(48),
    contexts: number(56),
    threads: number(64),
    handles: number(72),
    pinnedMemory: number(80),
    waited: number(88),
    roundTrips: Array.from({ length: ROUND_TRIP_BUCKETS }, (_, bucket) => number(ROUND_TRIPS_OFFSET + 8 * bucket)),
  };
}
