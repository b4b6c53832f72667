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
}

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
    return { report: openSync(path.join(this.#directory, 'report'), 'a'), log: openSync(path.join(this.#directory, 'log'), 'a') };
  }

  /** From the first line on, as they come. */
  follow(listener: SessionListener): void {
    const told = Number(readIfThere(this.#told) ?? 0);
    this.#report = new LineFollower(path.join(this.#directory, 'report'), (line) => listener.report(line, ++this.#lines <= told));
    this.#log = new LineFollower(path.join(this.#directory, 'log'), (line) => listener.log(line));
    try {
      this.#watcher = watch(this.#directory, () => this.#read()).on('error', () => this.#lookNowAndThen());
    } catch {
      this.#lookNowAndThen();
    }
    this.#read();
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

  #read(): void {
    this.#report?.read();
    this.#log?.read();
    this.#log?.limit(LOG_BYTES);
  }

  #lookNowAndThen(): void {
    this.#timer ??= setInterval(() => this.#read(), LOOK_EVERY_MS).unref();
  }

  #stop(): void {
    this.#watcher?.close();
    clearInterval(this.#timer);
    this.#report = undefined;
    this.#log = undefined;
  }
}
