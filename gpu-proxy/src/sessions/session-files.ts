import { closeSync, type FSWatcher, openSync, rmSync, watch } from 'node:fs';
import path from 'node:path';
import type { SessionRecord } from '@nvidia-virtual/ledger';
import { SESSION_RECORD } from '@nvidia-virtual/node-state/paths';
import { readSession } from '@nvidia-virtual/node-state/specification';
import {
  makeDirectoryAtomically,
  readIfThere,
  removeDirectoryAtomically,
  writeFileAtomically,
} from '@nvidia-virtual/service/files';
import type { Addon } from '../host/addon.js';
import type { WorkerFiles } from '../workers/worker.js';
import { createFigures } from './figures.js';
import { LineFollower } from './line-follower.js';

interface SessionListener {
  /**
   * A line of the worker's report. `told`: an earlier gpu-proxy already reported it to the user.
   */
  report(line: string, told: boolean): void;
  /** A line of the worker's own log. */
  log(line: string): void;
  /** The report exceeds REPORT_BYTES and is not read further. */
  endless(): void;
}

/**
 * Limit on the report, which is never truncated. A regular worker stays far below: it reports only
 * changes, with a rate limit.
 */
export const REPORT_BYTES = 4 * 1024 * 1024;
/** Limit on the log, so that a worker cannot fill the disk. */
const LOG_BYTES = 1024 * 1024;
/** Polling interval if inotify has no watch left. */
const LOOK_EVERY_MS = 250;

/**
 * The directory of one session. Its worker writes there even while no gpu-proxy runs.
 */
export class SessionFiles {
  readonly figures: string;
  /** Socket on which the worker receives commands. */
  readonly commands: string;
  /** Socket on which the keeper of its files receives commands. */
  readonly keeper: string;
  /** The record of its arena (arenas/session-arena.ts). */
  readonly arena: string;
  readonly #directory: string;
  readonly #told: string;
  #watcher: FSWatcher | undefined;
  #timer: NodeJS.Timeout | undefined;
  #report: LineFollower | undefined;
  #log: LineFollower | undefined;
  /** Number of lines read from the report. */
  #lines = 0;
  /** Pending read of the next chunk. */
  #next: NodeJS.Immediate | undefined;

  constructor(directory: string) {
    this.#directory = directory;
    this.#told = path.join(directory, 'told');
    this.figures = path.join(directory, 'figures');
    this.commands = path.join(directory, 'commands');
    this.keeper = path.join(directory, 'keeper');
    this.arena = path.join(directory, 'arena');
  }

  static make(directory: string, record: SessionRecord): SessionFiles {
    makeDirectoryAtomically(directory, 0o700, (unfinished) => {
      writeFileAtomically(path.join(unfinished, SESSION_RECORD), JSON.stringify(record));
      for (const name of ['report', 'log'])
        closeSync(openSync(path.join(unfinished, name), 'wx', 0o600));
      createFigures(path.join(unfinished, 'figures'));
    });
    return new SessionFiles(directory);
  }

  readRecord(): SessionRecord | undefined {
    return readSession(this.#directory);
  }

  writeRecord(record: SessionRecord): void {
    writeFileAtomically(path.join(this.#directory, SESSION_RECORD), JSON.stringify(record));
  }

  /** Descriptors for the worker, to be closed by the caller. */
  openForWorker(addon: Addon): WorkerFiles {
    const opened: number[] = [];
    const open = (file: () => number) => {
      const descriptor = file();
      opened.push(descriptor);
      return descriptor;
    };
    try {
      rmSync(this.commands, { force: true }); // of a warm worker that could not be assigned
      return {
        report: open(() => openSync(path.join(this.#directory, 'report'), 'a')),
        log: open(() => openSync(path.join(this.#directory, 'log'), 'a')),
        commands: open(() => addon.commandSocket(this.commands)),
      };
    } catch (error) {
      for (const descriptor of opened) closeSync(descriptor);
      throw error;
    }
  }

  /** Reads report and log from the first line, and follows them. */
  follow(listener: SessionListener): void {
    const told = Number(readIfThere(this.#told) ?? 0);
    this.#report = new LineFollower(path.join(this.#directory, 'report'), (line) =>
      listener.report(line, ++this.#lines <= told),
    );
    this.#log = new LineFollower(path.join(this.#directory, 'log'), (line) => listener.log(line));
    try {
      this.#watcher = watch(this.#directory, () => this.#read(listener)).on('error', () =>
        this.#lookNowAndThen(listener),
      );
    } catch {
      this.#lookNowAndThen(listener);
    }
    this.#read(listener);
  }

  /**
   * Records that all lines so far were reported to the user. The next gpu-proxy reads the report
   * from the first line and must not repeat them.
   */
  noteTold(): void {
    writeFileAtomically(this.#told, String(this.#lines));
  }

  /** Reads the last lines after the worker's exit. */
  finish(): void {
    this.#report?.finish();
    this.#log?.finish();
    this.#stop();
  }

  remove(): void {
    removeDirectoryAtomically(this.#directory);
  }

  /** Stops reading. The next gpu-proxy continues. */
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
