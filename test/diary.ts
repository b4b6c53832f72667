import { closeSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';

const THREADS = 2;
const WORDS = 3;
const STOP_OFFSET = THREADS * WORDS * 8;
const STATES = ['not begun', 'inside a call', 'between calls', 'ended'] as const;

export interface Entry {
  readonly state: (typeof STATES)[number];
  readonly calls: number;
  readonly error: number;
}

/** A file in which a program records the state of its threads: test/diary.h. */
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
    }));
  }

  /** Requests an orderly end. Not every program supports it. */
  stop(): void {
    writeSync(this.file, Buffer.from([1]), 0, 1, STOP_OFFSET);
  }

  close(): void {
    closeSync(this.file);
  }
}
