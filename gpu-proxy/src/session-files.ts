import { closeSync, type FSWatcher, openSync, watch } from 'node:fs';
import path from 'node:path';
import type { SessionRecord } from '@nvidia-virtual/ledger';
import { createFigures } from './figures.js';
import { makeDirectoryAtomically, readIfThere, removeDirectoryAtomically, writeFileAtomically } from './files.js';
import { LineFollower } from './line-follower.js';
import { readSession } from './specification.js';

export interface SessionListener {
  /** A line of the worker's report. `told`: an earlier proxy has told its user what there was to tell. */
  report(line: string, told: boolean): void;
  /** A line of the worker's own log. */
  log(line: string): void;
  /** The report is longer than one can be, and is read no further. */
  endless(): void;
}

/** The report stays whole while the session lives, and no sound worker gets near: it says what is new, and that sparingly. */
export const REPORT_BYTES = 4 * 1024 * 1024;
/** A worker that talks without end must not fill the disk. */
const LOG_BYTES = 1024 * 1024;
/** Where the system has no watch left to give. */
const LOOK_EVERY_MS = 250;

/** The directory of one session. Its worker writes there whether or not a proxy lives to read it. */
export class SessionFiles {
  readonly figures: string;
  readonly #directory: string;
  readonly #told: string;
  #watcher: FSWatcher | undefined;
  #timer: NodeJS.Timeout | undefined;
  #report: LineFollower | undefined;
  #log: LineFollower | undefined;
  /** Lines of the report. */
  #lines = 0;
  /** There was more to read than is read at once. */
  #next: NodeJS.Immediate | undefined;

  constructor(directory: string) {
    this.#directory = directory;
    this.#told = path.join(directory, 'told');
    this.figures = path.join(directory, 'figures');
  }

  static make(directory: string, record: SessionRecord): SessionFiles {
    makeDirectoryAtomically(directory, 0o700, (unfinished) => {
      writeFileAtomically(path.join(unfinished, 'session.json'), JSON.stringify(record));
      for (const name of ['report', 'log']) closeSync(openSync(path.join(unfinished, name), 'wx', 0o600));
      createFigures(path.join(unfinished, 'figures'));
    });
    return new SessionFiles(directory);
  }

  readRecord(): SessionRecord | undefined {
    return readSession(path.join(this.#directory, 'session.json'));
  }

  writeRecord(record: SessionRecord): void {
    writeFileAtomically(path.join(this.#directory, 'session.json'), JSON.stringify(record));
  }

  /** Descriptors for the worker, to be closed by the caller. */
  openForWorker(): { report: number; log: number } {
    const report = openSync(path.join(this.#directory, 'report'), 'a');
    try {
      return { report, log: openSync(path.join(this.#directory, 'log'), 'a') };
    } catch (error) {
      closeSync(report);
      throw error;
    }
  }

  /** From the first line on, as they come. */
  follow(listener: SessionListener): void {
    const told = Number(readIfThere(this.#told) ?? 0);
    this.#report = new LineFollower(path.join(this.#directory, 'report'), (line) => listener.report(line, ++this.#lines <= told));
    this.#log = new LineFollower(path.join(this.#directory, 'log'), (line) => listener.log(line));
    try {
      this.#watcher = watch(this.#directory, () => this.#read(listener)).on('error', () => this.#lookNowAndThen(listener));
    } catch {
      this.#lookNowAndThen(listener);
    }
    this.#read(listener);
  }

  /** The user was told of all that the report said so far, and need not be again by the next proxy, which reads it from the first line. */
  noteTold(): void {
    writeFileAtomically(this.#told, String(this.#lines));
  }

  /** The worker is gone: hears what it said last. */
  finish(): void {
    this.#report?.finish();
    this.#log?.finish();
    this.#stop();
  }

  remove(): void {
    removeDirectoryAtomically(this.#directory);
  }

  /** Another proxy will go on here. */
  leave(): void {
    this.#report?.close();
    this.#log?.close();
    this.#stop();
  }

  #read(listener: SessionListener): void {
    if (this.#next) return;
    if (this.#report && this.#report.size > REPORT_BYTES) {
      this.#report.close();
      this.#report = undefined;
      listener.endless();
    }
    const more = [this.#report?.read(), this.#log?.read()].includes(true);
    this.#log?.limit(LOG_BYTES);
    if (!more) return;
    this.#next = setImmediate(() => {
      this.#next = undefined;
      this.#read(listener);
    });
  }

  #lookNowAndThen(listener: SessionListener): void {
    this.#timer ??= setInterval(() => this.#read(listener), LOOK_EVERY_MS).unref();
  }

  #stop(): void {
    this.#watcher?.close();
    clearInterval(this.#timer);
    clearImmediate(this.#next);
    this.#report = undefined;
    this.#log = undefined;
  }
}
