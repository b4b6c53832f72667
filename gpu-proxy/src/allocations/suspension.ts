import type { MemoryState } from '@nvidia-virtual/ledger';
import { ProxyError } from '@nvidia-virtual/service/errors';
import type { LiveSession } from '../sessions/live-session.js';
import type { AllocationDirectory } from './allocation-directory.js';

interface SuspensionOptions {
  readonly directory: AllocationDirectory;
  /** The live sessions. */
  sessions(): readonly LiveSession[];
  /** Sessions may start again. */
  resumed(): void;
}

/** How long the work of a session may take to end. */
const TIMEOUT_MS = 5000;

/**
 * Takes the GPU from all sessions of an allocation, and gives it back. Its specification says that
 * it is suspended once each worker is, and no longer says so before the first one goes on. So the
 * next gpu-proxy lets all workers go on, unless it reads that they are suspended.
 */
export class Suspension {
  readonly #options: SuspensionOptions;
  /** Requests are executed one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  #suspending = false;
  #resuming = false;
  #ended = false;

  constructor(options: SuspensionOptions) {
    this.#options = options;
  }

  /** Whether new sessions must wait. */
  get holds(): boolean {
    return this.#suspending || this.#suspended;
  }

  get state(): MemoryState {
    if (this.#suspending) return 'leaving';
    if (this.#resuming) return 'entering';
    return this.#suspended ? 'out' : 'resident';
  }

  /** Bytes of GPU memory that are in host memory. */
  get outBytes(): number {
    return 0;
  }

  /**
   * Does nothing if it is suspended.
   * @throws ProxyError WORK_STILL_RUNNING: every session goes on unchanged
   */
  suspend(): Promise<void> {
    return this.#next(async () => {
      if (this.#suspended) return;
      this.#suspending = true;
      try {
        await this.#suspendAll();
      } finally {
        this.#suspending = false;
        if (!this.#suspended) await this.#resumeAll();
      }
    });
  }

  /** Does nothing if it is not suspended. */
  resume(): Promise<void> {
    return this.#next(async () => {
      if (!this.#suspended) return;
      this.#save(false);
      await this.#resumeAll();
    });
  }

  /** An earlier gpu-proxy may have been killed while it suspended the sessions. */
  takeOver(): void {
    for (const session of this.#options.sessions()) {
      if (this.#suspended) void this.#suspendLate(session);
      else session.tell('resume');
    }
  }

  /** A session began, maybe while the others were suspended. */
  noteIntroduced(session: LiveSession): void {
    if (this.holds) void this.#suspendLate(session);
  }

  /** The allocation ends. */
  end(): void {
    this.#ended = true;
  }

  get #suspended(): boolean {
    return this.#options.directory.specification.suspended === true;
  }

  #next(request: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(request);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  #save(suspended: boolean): void {
    const { directory } = this.#options;
    const { id } = directory.specification;
    if (this.#ended) throw new ProxyError('ALLOCATION_UNKNOWN', { name: id });
    directory.save({ ...directory.specification, suspended: suspended || undefined });
  }

  async #suspendAll(): Promise<void> {
    const answers = await Promise.all(this.#options.sessions().map((one) => this.#suspendOne(one)));
    const refusal = answers.find((answer) => answer !== undefined);
    if (refusal) throw refusal;
    this.#save(true);
  }

  /**
   * A session that has not begun has no work, and may never begin, so it is not waited for. It
   * executes the command before its first call.
   */
  async #suspendOne(live: LiveSession): Promise<ProxyError | undefined> {
    const { session } = live;
    if (!session.introduced) {
      live.tell(`suspend ${TIMEOUT_MS}`);
      return undefined;
    }
    const reason = await live.command(`suspend ${TIMEOUT_MS}`, TIMEOUT_MS);
    if (reason === undefined) return undefined;
    const { pid, program } = session.record.client;
    const { id } = this.#options.directory.specification;
    return new ProxyError('WORK_STILL_RUNNING', { id, pid, program, reason });
  }

  async #resumeAll(): Promise<void> {
    this.#resuming = true;
    try {
      this.#options.resumed();
      await Promise.all(this.#options.sessions().map((live) => this.#resumeOne(live)));
    } finally {
      this.#resuming = false;
    }
  }

  async #resumeOne(live: LiveSession): Promise<void> {
    if (!live.session.introduced) return live.tell('resume');
    const reason = await live.command('resume');
    if (reason !== undefined)
      live.session.logger.error(`The session cannot be resumed: ${reason}.`);
  }

  /** Until it is suspended: it may have begun just before, and have work that does not end. */
  async #suspendLate(live: LiveSession): Promise<void> {
    for (let first = true; this.holds && !live.over; first = false) {
      const reason = await live.command(`suspend ${TIMEOUT_MS}`, TIMEOUT_MS);
      if (reason === undefined) return;
      if (first)
        live.session.logger.warn(
          `The session of a suspended allocation is not suspended yet: ${reason}.`,
        );
    }
  }
}
