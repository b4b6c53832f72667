import { setTimeout as sleep } from 'node:timers/promises';
import type { AllocationSpecification, MemoryState, Suspender } from '@nvidia-virtual/ledger';
import { Backoff } from '@nvidia-virtual/service/backoff';
import { ProxyError } from '@nvidia-virtual/service/errors';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import type { Logger } from 'pino';
import type { MemoryFile } from '../arenas/memory-file.js';
import { arenaSize, moveMs } from '../arenas/session-arena.js';
import type { LiveSession } from '../sessions/live-session.js';
import { isRefusal, type WorkerAnswer } from '../workers/worker-commands.js';
import type { AllocationDirectory } from './allocation-directory.js';
import type { AllocationHost } from './allocation-host.js';

interface SuspensionOptions {
  readonly directory: AllocationDirectory;
  readonly host: Pick<AllocationHost, 'arenas' | 'gpuMemory' | 'isOversubscribed' | 'trouble'>;
  readonly logger: Logger;
  /** The live sessions. */
  sessions(): readonly LiveSession[];
  /** Sessions may start again. */
  resumed(): void;
}

/** A suspended session, and how much of its GPU memory is to leave. */
interface Leaving {
  readonly live: LiveSession;
  readonly bytes: number;
}

/** A change of the specification that comes with another one, all at once. */
export type SavedToo = Partial<Pick<AllocationSpecification, 'checkpoint'>>;

type Done = Extract<WorkerAnswer, { kind: 'done' }>;

/** Timeout for the end of a session's work. */
const TIMEOUT_MS = 5000;
/** Milliseconds between attempts to suspend a late session, or to resume after a takeover. */
const RETRY = { first: 1000, longest: 60_000 };
/** Arenas grow by so many bytes at least, so that they have few files. */
const LEAST_FILE = 2 ** 30;
/** A session may have so much more than its quota, because memory has whole pages. */
const SLACK = 64 * 2 ** 20;

/**
 * Takes GPU time and GPU memory from all sessions of an allocation, and gives them back. Its
 * specification says that it is suspended once the memory of each session is out, and no longer
 * says so before the first one goes on. So the next gpu-proxy resumes all sessions, unless it reads
 * that they are suspended.
 */
export class Suspension {
  readonly #options: SuspensionOptions;
  /** Requests are executed one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  /** Sessions that are asked again and again. */
  readonly #late = new Set<LiveSession>();
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
    if (this.#resuming && this.outBytes > 0) return 'entering';
    return this.#suspended ? 'out' : 'resident';
  }

  /** Bytes of GPU memory that are in host memory. */
  get outBytes(): number {
    return this.#options.sessions().reduce((sum, { arena }) => sum + arena.outBytes, 0);
  }

  /**
   * @param also is saved with that
   * @returns false if it was suspended; then this one suspends it too
   * @throws ProxyError every session goes on unchanged; after MEMORY_NOT_BACK it is suspended
   */
  suspend(by: Suspender, also: SavedToo = {}): Promise<boolean> {
    return this.#next(async () => {
      if (this.#suspended) {
        // The policy lets a part leave only.
        if (by !== 'policy' && this.#isPolicyAlone) await this.#leaveAll(await this.#suspendAll());
        this.#save([...this.#others(by), by], true, also);
        return false;
      }
      this.#suspending = true;
      try {
        const leaving = await this.#suspendAll();
        await this.#leaveAll(leaving);
        this.#save([by], true, also);
        return true;
      } finally {
        this.#suspending = false;
        if (!this.#suspended) await this.#resumeAll([by]);
      }
    });
  }

  /**
   * The policy of its GPU suspends it, and pieces of at least `bytes` leave, or all that can.
   * @returns milliseconds in which memory moved
   * @throws ProxyError if it was not suspended, every session goes on unchanged
   */
  evict(bytes: number): Promise<number> {
    return this.#next(async () => {
      this.#suspending = true;
      try {
        const leaving = await this.#suspendAll();
        const duration = await this.#leavePart(leaving, bytes);
        this.#save([...this.#others('policy'), 'policy']);
        return duration;
      } finally {
        this.#suspending = false;
        if (!this.#suspended) await this.#resumeAll(['policy']);
      }
    });
  }

  /**
   * Pieces of at most `bytes` come back to the suspended sessions.
   * @returns milliseconds in which memory moved
   * @throws ProxyError MEMORY_NOT_BACK
   */
  enter(bytes: number): Promise<number> {
    return this.#next(async () => {
      this.#resuming = true;
      const begun = performance.now();
      try {
        let missing = bytes;
        for (const live of this.#outLargestFirst) missing -= await this.#enterOne(live, missing);
        return performance.now() - begun;
      } finally {
        this.#resuming = false;
      }
    });
  }

  /**
   * @param also is saved with that
   * @returns false if it was not suspended, or if another one suspends it too
   * @throws ProxyError it stays suspended
   */
  resume(by: Suspender, also: SavedToo = {}): Promise<boolean> {
    return this.#next(async () => {
      if (!this.#suspended) return false;
      if (!('checkpoint' in also)) this.#requireWorkers();
      const others = this.#others(by);
      const before = this.#suspendedBy;
      this.#save(others, others.length > 0, also);
      if (others.length > 0) return false;
      await this.#resumeAll(before);
      return true;
    });
  }

  /**
   * Executes `body` while the memory of all sessions is out. Then those go on that did before.
   * @throws ProxyError every session goes on unchanged; after MEMORY_NOT_BACK it is suspended
   */
  whileOut(body: () => Promise<void>): Promise<void> {
    return this.#next(async () => {
      this.#requireWorkers();
      this.#suspending = true;
      try {
        await this.#leaveAll(await this.#suspendAll());
        await body();
      } finally {
        this.#suspending = false;
        if (!this.#suspended) await this.#resumeAll(this.#evictors);
      }
    });
  }

  /** Executes `body` while it stays suspended. @throws Error if it is not */
  whileSuspended<T>(body: () => Promise<T>): Promise<T> {
    return this.#next(async () => {
      if (!this.#suspended) throw new Error('it was resumed meanwhile');
      return body();
    });
  }

  /**
   * An earlier gpu-proxy may have been killed while it suspended or resumed the sessions.
   * @param first is executed before a session is resumed
   */
  takeOver(first?: () => Promise<void>): void {
    const { logger } = this.#options;
    const sessions = this.#options.sessions();
    if (this.#suspended) for (const session of sessions) void this.#suspendLate(session);
    if (first) this.#next(first).catch((error) => logger.error((error as Error).message));
    if (first || this.#suspended || sessions.some(({ arena }) => arena.mayBeOut))
      void this.resumeUnheld();
    else for (const session of sessions) session.tell('resume');
  }

  /** Limit on the host memory of so many sessions together, in bytes. */
  mostOf(sessions: number): number {
    return this.#quota + sessions * SLACK;
  }

  /** A session began, maybe while the others were suspended. */
  noteIntroduced(session: LiveSession): void {
    if (this.holds) void this.#suspendLate(session);
  }

  /** The allocation ends, or this gpu-proxy leaves it. */
  end(): void {
    this.#ended = true;
  }

  get #id(): string {
    return this.#options.directory.specification.id;
  }

  get #suspended(): boolean {
    return this.#options.directory.specification.suspended === true;
  }

  get #suspendedBy(): readonly Suspender[] {
    return this.#options.directory.specification.suspendedBy ?? [];
  }

  /** The suspenders to record if the GPU has no room for its memory. */
  get #evictors(): Suspender[] {
    const { host, directory } = this.#options;
    return host.isOversubscribed(directory.specification) ? ['policy'] : [];
  }

  get #isPolicyAlone(): boolean {
    return this.#suspendedBy.length === 1 && this.#suspendedBy[0] === 'policy';
  }

  /** Sessions with memory in the host. */
  get #outLargestFirst(): LiveSession[] {
    const out = this.#options.sessions().filter(({ arena }) => arena.outBytes > 0);
    return out.sort((one, other) => other.arena.outBytes - one.arena.outBytes);
  }

  #requireWorkers(): void {
    const { checkpoint } = this.#options.directory.specification;
    if (checkpoint === undefined) return;
    const { directory } = checkpoint;
    throw new ProxyError('ALLOCATION_IN_FILE', { id: this.#id, directory });
  }

  #others(by: Suspender): Suspender[] {
    return this.#suspendedBy.filter((one) => one !== by);
  }

  #next<T>(request: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(request);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  #save(by: readonly Suspender[], suspended = true, also: SavedToo = {}): void {
    const { directory } = this.#options;
    if (this.#ended) throw new ProxyError('ALLOCATION_UNKNOWN', { name: this.#id });
    directory.save({
      ...directory.specification,
      ...also,
      suspended: suspended || undefined,
      suspendedBy: by.length > 0 ? by : undefined,
    });
  }

  /**
   * A session that has not begun has no work and no memory, and may never begin, so it is not
   * waited for. It executes the command before its first call.
   */
  async #suspendAll(): Promise<Leaving[]> {
    const [begun, others] = this.#sessions();
    for (const live of others) live.tell(`suspend ${TIMEOUT_MS}`);
    const answers = await Promise.all(
      begun.map(async (live) => ({
        live,
        answer: await live.command(`suspend ${TIMEOUT_MS}`, TIMEOUT_MS),
      })),
    );
    return answers.flatMap(({ live, answer }) => {
      if (isRefusal(answer)) throw this.#refusal('WORK_STILL_RUNNING', live, answer.reason);
      if (answer.kind === 'stays' && this.#movesMemory)
        throw this.#refusal('MEMORY_STAYS', live, answer.reason);
      return this.#mayLeave(answer) ? [{ live, bytes: answer.bytes }] : [];
    });
  }

  /** Whether GPU memory leaves. Otherwise a suspension takes GPU time only. */
  get #movesMemory(): boolean {
    return this.#options.host.arenas.limit > 0;
  }

  #mayLeave(answer: WorkerAnswer): answer is Done {
    return answer.kind === 'done' && answer.bytes > 0 && this.#movesMemory;
  }

  async #leaveAll(leaving: readonly Leaving[]): Promise<void> {
    const total = leaving.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#checkTotal(leaving, total);
    const files = await this.#makeArenas(leaving);
    const answers = await Promise.all(
      leaving.map(({ live, bytes }) => live.arena.leave(bytes, files.get(live), moveMs(total))),
    );
    for (const [index, answer] of answers.entries())
      if (isRefusal(answer))
        throw this.#refusal('MEMORY_STAYS', (leaving[index] as Leaving).live, answer.reason);
  }

  /** @returns milliseconds in which memory moved */
  async #leavePart(leaving: readonly Leaving[], bytes: number): Promise<number> {
    const total = leaving.reduce((sum, one) => sum + one.bytes, 0);
    this.#checkTotal(leaving, total + this.outBytes);
    let [missing, duration] = [bytes, 0];
    for (const one of [...leaving].sort((a, b) => b.bytes - a.bytes)) {
      if (missing <= 0) break;
      const { outBytes: before } = one.live.arena;
      duration += await this.#leaveOne(one, Math.min(one.bytes, missing));
      missing -= one.live.arena.outBytes - before;
    }
    return duration;
  }

  /** @returns milliseconds in which memory moved */
  async #leaveOne({ live, bytes: most }: Leaving, bytes: number): Promise<number> {
    const leave = async (file?: MemoryFile) => {
      const begun = performance.now();
      const answer = await live.arena.leave(bytes, file, moveMs(most));
      return { answer, duration: performance.now() - begun };
    };
    const { answer, duration } = await leave();
    if (isRefusal(answer)) throw this.#refusal('MEMORY_STAYS', live, answer.reason);
    if (answer.kind !== 'lacks') return duration;
    const size = arenaSize(Math.max(answer.bytes, Math.min(most - live.arena.free, LEAST_FILE)));
    const others = this.#options.sessions().filter((one) => one !== live);
    if (this.#options.host.arenas.usedBy(this.#id) + size > this.#most) await dropArenas(others);
    const again = this.#options.sessions().reduce((sum, { arena }) => sum + arena.size, 0);
    const wanted = { id: this.#id, sizes: [size], again, most: this.#most };
    const [file] = await this.#options.host.arenas.make(wanted);
    const second = await leave(file);
    if (isRefusal(second.answer)) throw this.#refusal('MEMORY_STAYS', live, second.answer.reason);
    return second.duration;
  }

  /** @returns bytes that are back */
  async #enterOne(live: LiveSession, bytes: number): Promise<number> {
    if (bytes <= 0) return 0;
    const { outBytes: before } = live.arena;
    const answer = await live.arena.enter(bytes, moveMs(Math.min(bytes, before)));
    if (isRefusal(answer)) throw this.#refusal('MEMORY_NOT_BACK', live, answer.reason);
    return before - live.arena.outBytes;
  }

  /** Workers are not trusted: one could take the node's memory. */
  #checkTotal(leaving: readonly Leaving[], total: number): void {
    if (total <= this.#most) return;
    const [largest] = [...leaving].sort((one, other) => other.bytes - one.bytes);
    const { live, bytes } = largest as Leaving;
    const reason =
      `its worker reports ${formatMemorySize(bytes)}, and all of the allocation together ` +
      `${formatMemorySize(total)}, more than ${formatMemorySize(this.#quota)}`;
    throw this.#refusal('MEMORY_STAYS', live, reason);
  }

  /** Bytes. */
  get #quota(): number {
    const { host, directory } = this.#options;
    const { memory, gpus } = directory.specification;
    return memory || (host.gpuMemory(gpus) ?? Number.POSITIVE_INFINITY);
  }

  get #most(): number {
    return this.mostOf(this.#options.sessions().length);
  }

  /**
   * Makes arenas for sessions whose own is too small, or adds to them if a part is out. If others
   * are larger than needed, so that there would be more than the quota, all are made anew.
   */
  async #makeArenas(leaving: readonly Leaving[]): Promise<Map<LiveSession, MemoryFile>> {
    const { arenas } = this.#options.host;
    const most = this.#most;
    const lacks = ({ live, bytes }: Leaving) => live.arena.free < bytes;
    const sizesOf = (ones: readonly Leaving[]) =>
      ones.map(({ live, bytes }) => arenaSize(bytes - live.arena.free));
    await dropArenas(leaving.filter(lacks).map(({ live }) => live));
    const needed = sizesOf(leaving.filter(lacks)).reduce((sum, size) => sum + size, 0);
    if (arenas.usedBy(this.#id) + needed > most) await dropArenas(this.#options.sessions());
    const lacking = leaving.filter(lacks);
    const sizes = sizesOf(lacking);
    const again = leaving
      .filter((one) => !lacks(one))
      .reduce((sum, { live }) => sum + live.arena.size, 0);
    const files = await arenas.make({ id: this.#id, sizes, again, most });
    return new Map(lacking.map(({ live }, index) => [live, files[index] as MemoryFile]));
  }

  /**
   * The session with most memory first: if there is no room for it on the GPU, no other one has
   * begun to go on. A session that is refused stays suspended, so all others are suspended again.
   * @param by who suspends it then
   * @throws ProxyError MEMORY_NOT_BACK
   */
  async #resumeAll(by: readonly Suspender[]): Promise<void> {
    this.#resuming = true;
    try {
      const [begun, others] = this.#sessions();
      for (const live of others) live.tell('resume');
      const out = this.#outLargestFirst;
      for (const live of out) await this.#resumeOne(live);
      await Promise.all(
        begun.filter((live) => !out.includes(live)).map((live) => this.#resumeOne(live)),
      );
    } catch (error) {
      this.#save(by);
      for (const live of this.#options.sessions()) void this.#suspendLate(live);
      throw error;
    } finally {
      this.#resuming = false;
    }
    this.#options.resumed();
  }

  /**
   * Resumes it as long as nobody suspends it. On an oversubscribed GPU without room, the policy
   * does so later.
   */
  async resumeUnheld(): Promise<void> {
    const { host, directory, logger } = this.#options;
    const backoff = new Backoff(RETRY);
    const isUnheld = () => !this.#ended && this.#suspendedBy.length === 0;
    for (let first = true; isUnheld(); first = false) {
      try {
        await this.#next(async () => {
          if (!isUnheld()) return;
          if (this.#suspended) this.#save([], false);
          await this.#resumeAll(this.#evictors);
        });
        return;
      } catch (error) {
        if (this.#ended) return;
        logger.error((error as Error).message);
        if (first && error instanceof ProxyError) host.trouble(directory.specification, error);
      }
      await sleep(backoff.next(), undefined, { ref: false });
    }
  }

  async #resumeOne(live: LiveSession): Promise<void> {
    const answer = await live.command('resume', moveMs(live.arena.outBytes));
    if (answer.kind === 'refused') throw this.#refusal('MEMORY_NOT_BACK', live, answer.reason);
    if (answer.kind === 'done') live.arena.noteBack();
    if (answer.kind === 'silent')
      live.session.logger.error(`The session cannot be resumed: ${answer.reason}.`);
  }

  /** Retries until the session is suspended. Its work may have begun just before, and not end. */
  async #suspendLate(live: LiveSession): Promise<void> {
    if (this.#late.has(live)) return;
    this.#late.add(live);
    await this.#suspendUntilDone(live).finally(() => this.#late.delete(live));
  }

  async #suspendUntilDone(live: LiveSession): Promise<void> {
    const backoff = new Backoff(RETRY);
    for (let first = true; this.holds && !this.#ended && !live.over; first = false) {
      const answer = await live.command(`suspend ${TIMEOUT_MS}`, TIMEOUT_MS);
      if (!isRefusal(answer)) return this.#leaveLate(live);
      if (first)
        live.session.logger.warn(
          `The session of a suspended allocation is not suspended yet: ${answer.reason}.`,
        );
      // A worker that takes no commands answers at once.
      await sleep(backoff.next(), undefined, { ref: false });
    }
  }

  /**
   * If its memory cannot leave, it stays on the GPU, and the session stays suspended. The policy
   * itself says how much is to leave.
   */
  async #leaveLate(live: LiveSession): Promise<void> {
    await this.#next(async () => {
      if (!this.#suspended || this.#ended || this.#isPolicyAlone) return;
      const answer = await live.command(`suspend ${TIMEOUT_MS}`, TIMEOUT_MS);
      if (this.#mayLeave(answer)) await this.#leaveAll([{ live, bytes: answer.bytes }]);
    }).catch((error) => live.session.logger.warn((error as Error).message));
  }

  /**
   * The sessions that have begun, and the others. After a takeover, the first report of a session
   * may not be read yet.
   */
  #sessions(): [LiveSession[], LiveSession[]] {
    const all = this.#options.sessions();
    const begun = all.filter(({ session, arena }) => session.introduced || arena.mayBeOut);
    return [begun, all.filter((live) => !begun.includes(live))];
  }

  #refusal(
    code: 'WORK_STILL_RUNNING' | 'MEMORY_STAYS' | 'MEMORY_NOT_BACK',
    { session }: LiveSession,
    reason: string,
  ): ProxyError {
    const { pid, program } = session.record.client;
    return new ProxyError(code, { id: this.#id, pid, program, reason });
  }
}

async function dropArenas(sessions: readonly LiveSession[]): Promise<void> {
  await Promise.all(sessions.map((live) => live.arena.dropArena()));
}
