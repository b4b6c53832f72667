import type { AllocationSpecification } from '@nvidia-virtual/ledger';
import { ProxyError } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import type { LiveSession } from '../sessions/live-session.js';
import { isRefusal, type WorkerAnswer } from '../workers/worker-commands.js';
import type { AllocationDirectory } from './allocation-directory.js';
import type { Suspension } from './suspension.js';

interface RelocationOptions {
  readonly directory: AllocationDirectory;
  readonly logger: Logger;
  readonly suspension: Pick<Suspension, 'whileOut' | 'resumeUnheld' | 'takeOver'>;
  /** The live sessions. */
  sessions(): readonly LiveSession[];
  /** Its specification names another GPU. */
  placed(): void;
}

/** Timeout of the driver's move of a program without memory. */
const MOVE_MS = 60_000;
/** Bytes per millisecond at which it copies memory that cannot leave, such as arrays (H200). */
const COPY_RATE = 1.3e6;

/**
 * Moves all sessions of an allocation to another GPU, or none. Meanwhile, `moving` of its
 * specification reserves its memory on the second GPU: the new one at first, then the former one,
 * until the memory is back. So it can return at any step. Its sessions belong on the GPU that
 * `gpus` names, wherever gpu-proxy was killed.
 */
export class Relocation {
  readonly #options: RelocationOptions;
  #ended = false;
  /** Whether a worker may have been started on another GPU. */
  #moved = false;

  constructor(options: RelocationOptions) {
    this.#options = options;
  }

  /**
   * Requires one GPU, and room on the other one. Reserves the room before it returns.
   * @param to UUID of a GPU of the same model
   * @throws ProxyError: it is on its former GPU, and goes on if it was not suspended
   */
  async move(to: string): Promise<void> {
    const { suspension } = this.#options;
    const { suspended = false } = this.#specification;
    const from = this.#present;
    this.#save({ moving: to });
    try {
      await suspension.whileOut(() => this.#place(from, to));
    } catch (error) {
      if (this.#present !== to || this.#ended) throw error;
      await this.#return(to, from, suspended);
      const { id } = this.#specification;
      const reason = `its memory has no room there (${reasonOf(error)})`;
      throw new ProxyError('ALLOCATION_STAYS', { id, gpu: to, reason });
    } finally {
      if (!this.#ended) this.#save({ moving: undefined });
    }
  }

  /** An earlier gpu-proxy may have been killed while it moved the sessions. */
  takeOver(): void {
    this.#moved = true;
    const { moving } = this.#specification;
    this.#options.suspension.takeOver(
      moving === undefined
        ? undefined
        : async () => {
            await this.#gather(this.#options.sessions(), this.#present);
            if (!this.#ended) this.#save({ moving: undefined });
          },
    );
  }

  /** A session has begun. Its worker may have been started on the former GPU. */
  noteIntroduced(live: LiveSession): void {
    const started = live.session.gpu?.uuid;
    const { gpus } = this.#specification;
    if (this.#moved && started !== undefined && gpus.length === 1 && started !== gpus[0])
      void this.#gather([live], this.#present);
  }

  /** The allocation ends, or this gpu-proxy leaves it. */
  end(): void {
    this.#ended = true;
  }

  get #specification() {
    return this.#options.directory.specification;
  }

  get #present(): string {
    return this.#specification.gpus[0] as string;
  }

  #save(change: Partial<Pick<AllocationSpecification, 'gpus' | 'moving' | 'shownAs'>>): void {
    const { directory } = this.#options;
    const { id } = directory.specification;
    if (this.#ended) throw new ProxyError('ALLOCATION_UNKNOWN', { name: id });
    directory.save({ ...directory.specification, ...change });
  }

  /** If that fails, it stays on the new GPU, and goes on as soon as its memory has room there. */
  async #return(to: string, from: string, suspended: boolean): Promise<void> {
    const { suspension } = this.#options;
    try {
      await suspension.whileOut(() => this.#place(to, from));
    } catch (error) {
      if (!suspended) void suspension.resumeUnheld();
      throw error;
    }
    if (!suspended) await suspension.resumeUnheld();
  }

  /** Timeout of one move. */
  get #timeoutMs(): number {
    return Math.ceil(MOVE_MS + this.#specification.memory / COPY_RATE);
  }

  /** All sessions, or none. The memory of all is out. */
  async #place(from: string, to: string): Promise<void> {
    this.#moved = true;
    const tried: LiveSession[] = [];
    for (const live of this.#options.sessions()) {
      tried.push(live);
      const answer = await tell(live, to, this.#timeoutMs);
      if (!isRefusal(answer)) continue;
      const ended = await this.#gather(tried, from);
      const { pid, program } = live.session.record.client;
      throw new ProxyError('PROGRAM_NOT_MOVED', {
        ...{ id: this.#specification.id, pid, program, gpu: to },
        reason: answer.reason,
        outcome:
          ended.length === 0
            ? 'Nothing has changed'
            : `The sessions of ${ended.map(nameOf).join(', ')} could not return, and have ended`,
      });
    }
    const { shownAs = from } = this.#specification;
    this.#save({
      ...{ gpus: [to], moving: from },
      ...{ shownAs: shownAs === to ? undefined : shownAs },
    });
    this.#options.placed();
  }

  /**
   * Ends the sessions that cannot be on the GPU. A move there may have to end first.
   * @returns those that it has ended
   */
  async #gather(sessions: readonly LiveSession[], gpu: string): Promise<LiveSession[]> {
    const ended: LiveSession[] = [];
    for (const live of sessions) {
      const answer = await tell(live, gpu, 2 * this.#timeoutMs);
      if (!isRefusal(answer)) continue;
      live.session.logger.error(
        `The session ends, because it cannot return to GPU ${gpu}: ${answer.reason}.`,
      );
      live.kill();
      ended.push(live);
    }
    return ended;
  }
}

/**
 * A session that has not begun may never begin, so it is not waited for. It executes the command
 * before its first call.
 */
async function tell(live: LiveSession, gpu: string, timeoutMs: number): Promise<WorkerAnswer> {
  const { session, arena } = live;
  if (session.introduced || arena.mayBeOut) return live.command(`move ${gpu}`, timeoutMs);
  live.tell(`move ${gpu}`);
  return { kind: 'done', bytes: 0 };
}

function nameOf({ session }: LiveSession): string {
  const { pid, program } = session.record.client;
  return `process ${pid} (${program})`;
}

function reasonOf(error: unknown): string {
  return (error as Error).message.replace(/\.$/, '');
}
