import { closeSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';

const THREADS = 2;
const WORDS = 4;
const STOP_OFFSET = THREADS * WORDS * 8;
const STATES = ['not begun', 'inside a call', 'between calls', 'ended'] as const;

export interface Entry {
  readonly state: (typeof STATES)[number];
  readonly calls: number;
  readonly error: number;
  /** CLOCK_MONOTONIC, nanoseconds: what process.hrtime.bigint() counts too. */
  readonly when: bigint;
}

/** The page in which a program says what its threads are doing: test/diary.h. */
export class Diary {
  private readonly file: number;

  constructor(readonly path: string) {
    this.file = openSync(path, 'w+');
    ftruncateSync(this.file, 4096);
  }

  read(): Entry[] {
    const bytes = Buffer.alloc(THREADS * WORDS * 8);
    readSync(this.file, bytes, 0, bytes.length, 0);
    const word = (thread: number, index: number) =>
      bytes.readBigUInt64LE((thread * WORDS + index) * 8);
    return Array.from({ length: THREADS }, (_, thread) => ({
      state: STATES[Number(word(thread, 0))] ?? 'not begun',
      calls: Number(word(thread, 1)),
      error: Number(word(thread, 2)),
      when: word(thread, 3),
    }));
  }

  /** Asks the program to end in good order; not every one listens. */
  stop(): void {
    writeSync(this.file, Buffer.from([1]), 0, 1, STOP_OFFSET);
  }

  close(): void {
    closeSync(this.file);
  }
}
