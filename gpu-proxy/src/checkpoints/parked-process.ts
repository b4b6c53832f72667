import { readlinkSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ParkedRecord } from '@nvidia-virtual/ledger';
import {
  identifyProcess,
  isAlive,
  type ProcessId,
  processOf,
} from '@nvidia-virtual/service/process-table';
import type { AllocationHost } from '../allocations/allocation-host.js';
import type { MemoryFile } from '../arenas/memory-file.js';
import { resolveUnder } from '../host/links.js';
import type { LiveSession } from '../sessions/live-session.js';
import {
  type KeeperCommand,
  sendWorkerCommand,
  type WorkerAnswer,
  type WorkerCommand,
} from '../workers/worker-commands.js';
import type { Expected } from './examination.js';
import { findKeepers, startKeeper, tellKeeper } from './keeper.js';

type Host = Pick<
  AllocationHost,
  'addon' | 'backend' | 'installation' | 'launcher' | 'sessionRecords'
>;
type Identity = ParkedRecord['worker'];

/** A file for the content of an arena. */
export interface ReturnedArena {
  readonly file: MemoryFile;
  /** Inode number of the file that had it. */
  readonly inode: string;
}

/** Timeout of the driver for detaching a process from its GPU, or for attaching it again. */
const DRIVER_MS = 60_000;
const IDS_MS = 10_000;
const IDS_LOOK_MS = 20;

/**
 * The process of a session on its way to a file and back. The record of the session names the
 * worker and its keeper before either of them does something, so the next gpu-proxy can go on.
 */
export class ParkedProcess {
  readonly #live: LiveSession;
  readonly #host: Host;

  constructor(live: LiveSession, host: Host) {
    this.#live = live;
    this.#host = host;
  }

  /** Makes it one that CRIU can write. @throws Error: unpark() undoes what is done */
  async park(): Promise<void> {
    const { worker } = this.#live.session.record;
    this.#save({ worker });
    await must(this.#tellWorker('park'));
    const keeper = await startKeeper(worker.pid, this.#keeperOptions);
    this.#save({ worker, keeper: { pid: keeper.pid, startTime: keeper.startTime ?? '' } });
    await must(this.#tellKeeper('hold'));
    await must(this.#tellWorker('detach'));
  }

  /** The resources that the process may have. @param uid of its allocation */
  expected(uid: number | undefined): Expected {
    const { backend, installation, launcher } = this.#host;
    const { worker, versions = path.dirname(worker) } = installation;
    const { worker: running, parked } = this.#live.session.record;
    const { pid } = parked?.worker ?? running;
    const hasRoom = launcher.allocations !== undefined;
    // The driver's files may be links to another directory, which a room shows, too.
    const driver = resolveUnder(launcher.seen('/'), backend.driver) ?? backend.driver;
    const code = [versions, path.dirname(backend.driver), path.dirname(driver)];
    return {
      ...{ pid, uid, hasRoom },
      code: hasRoom ? code : code.map((each) => realpathSync(each)),
    };
  }

  /** Lets the worker go on as before. @returns why it cannot; undefined: it does */
  async unpark(): Promise<string | undefined> {
    const { parked } = this.#live.session.record;
    if (!parked) return undefined;
    const { keeperSocket } = this.#live;
    if (!parked.keeper) for (const each of findKeepers(parked.worker.pid, keeperSocket)) kill(each);
    const given =
      parked.keeper && isAlive(parked.keeper)
        ? await this.#tellKeeper(`give ${parked.worker.pid}`)
        : undefined;
    const answer =
      given === undefined || given.kind === 'stays' ? await this.#tellWorker('unpark') : given;
    // A worker that refused to park also refuses to unpark.
    const never = answer.kind === 'refused' && parked.keeper === undefined;
    if (answer.kind !== 'done' && !never) return reasonOf(answer);
    this.#save(undefined);
    if (parked.keeper) kill(parked.keeper);
    return undefined;
  }

  /**
   * The file counts: its processes end, and the keeper has its client. Unless it has got its files
   * back already: then it counts.
   */
  async leave(): Promise<void> {
    const { parked, worker } = this.#live.session.record;
    if (!parked?.keeper) return;
    if (!isAlive(parked.keeper)) {
      if (worker.pid === parked.restored?.pid) this.#save(undefined);
      else this.endStray(); // its client has ended meanwhile
      return;
    }
    if (worker.pid !== parked.keeper.pid) this.#live.exchangeWorker(parked.keeper);
    kill(parked.worker);
    this.endStray();
    await this.#tellKeeper('drop');
    this.#live.arena.noteInFile();
  }

  /** Ends a process that was made from the file and has not got its files. */
  endStray(): void {
    const { worker, restored } = this.#parked;
    const { pid, startTime } = identifyProcess(worker.pid);
    if (startTime === undefined) return;
    // Another program may have the pid, also another worker: that is left alone.
    const isStray = hasNoConnection(pid) && !this.#isOfAnother({ pid, startTime });
    if (restored?.startTime === startTime || isStray) kill({ pid, startTime });
  }

  /** Whether it is the worker of another session, which may be on its way to a file, too. */
  #isOfAnother({ pid, startTime }: Identity): boolean {
    const { allocation, number } = this.#live.session.record;
    return this.#host
      .sessionRecords()
      .filter((other) => other.allocation !== allocation || other.number !== number)
      .flatMap(({ worker, parked }) => [worker, parked?.worker, parked?.restored])
      .some((named) => named?.pid === pid && named.startTime === startTime);
  }

  /**
   * CRIU makes it with its former pid and thread ids. A process that has ended has its pid until
   * its parent knows.
   * @throws Error if another process has one of them
   */
  async freeIds(threads: readonly number[]): Promise<void> {
    this.endStray();
    const deadline = Date.now() + IDS_MS;
    for (const id of [this.#parked.worker.pid, ...threads])
      for (let owner = processOf(id); owner; owner = processOf(id)) {
        const { pid, program } = owner;
        if (Date.now() > deadline)
          throw new Error(`process ${pid} (${program}) has the id ${id} of a worker. End it`);
        await sleep(IDS_LOOK_MS);
      }
  }

  /** Records that CRIU has restored the process, with its former pid. */
  noteRestored(): void {
    const parked = this.#parked;
    const { pid, startTime = '' } = identifyProcess(parked.worker.pid);
    this.#save({ ...parked, restored: { pid, startTime } });
  }

  /** Gives it its files. @returns why it does not go on; undefined: it does */
  async takeBack(arenas: readonly ReturnedArena[]): Promise<string | undefined> {
    const answer = await this.#giveAll(arenas);
    if (answer.kind === 'done') {
      this.#save(undefined);
      return undefined;
    }
    await this.leave();
    return reasonOf(answer);
  }

  async #giveAll(arenas: readonly ReturnedArena[]): Promise<WorkerAnswer> {
    const { restored } = this.#parked;
    if (!restored) return { kind: 'ended' };
    for (const { file, inode } of arenas) {
      const answer = await this.#tellKeeper(`arena ${inode}`, file.fd);
      if (answer.kind !== 'done') return answer;
    }
    this.#live.arena.noteFromFile(arenas.map(({ file }) => file.handle));
    this.#live.exchangeWorker(restored);
    return this.#tellKeeper(`give ${restored.pid}`);
  }

  get #parked(): ParkedRecord {
    return this.#live.session.record.parked as ParkedRecord;
  }

  get #keeperOptions() {
    return { ...this.#host, socket: this.#live.keeperSocket };
  }

  #save(parked: ParkedRecord | undefined): void {
    this.#live.saveRecord({ ...this.#live.session.record, parked });
  }

  #tellWorker(command: WorkerCommand): Promise<WorkerAnswer> {
    const { addon } = this.#host;
    return sendWorkerCommand(addon, this.#live.commandSocket, command, { timeoutMs: DRIVER_MS });
  }

  #tellKeeper(command: KeeperCommand, file?: number): Promise<WorkerAnswer> {
    return tellKeeper(this.#keeperOptions, command, file);
  }
}

/** Whether it is a worker that has put down its files. Others have the client at this number. */
function hasNoConnection(pid: number): boolean {
  try {
    const isWorker = /nvidia-virtual-worker$/.test(readlinkSync(`/proc/${pid}/exe`));
    return isWorker && readlinkSync(`/proc/${pid}/fd/3`) === 'anon_inode:[eventfd]';
  } catch {
    return false;
  }
}

function kill(identity: ProcessId): void {
  if (isAlive(identity)) process.kill(identity.pid, 'SIGKILL');
}

async function must(answer: Promise<WorkerAnswer>): Promise<void> {
  const { kind, ...rest } = await answer;
  if (kind !== 'done') throw new Error(reasonOf({ kind, ...rest } as WorkerAnswer));
}

function reasonOf(answer: WorkerAnswer): string {
  return 'reason' in answer ? answer.reason : 'it has ended';
}
