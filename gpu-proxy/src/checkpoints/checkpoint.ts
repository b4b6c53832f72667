import { randomBytes } from 'node:crypto';
import {
  existsSync,
  ftruncateSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs';
import path from 'node:path';
import type { AllocationSpecification, CheckpointRecord } from '@nvidia-virtual/ledger';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { readIfThere, syncToDisk, writeFileAtomically } from '@nvidia-virtual/service/files';
import { formatMemorySize } from '@nvidia-virtual/service/memory-size';
import type { Logger } from 'pino';
import type { AllocationDirectory } from '../allocations/allocation-directory.js';
import type { AllocationHost } from '../allocations/allocation-host.js';
import { tenantOf, workerProgram } from '../allocations/start-session-worker.js';
import type { Suspension } from '../allocations/suspension.js';
import { populate } from '../arenas/memory-file.js';
import type { LiveSession } from '../sessions/live-session.js';
import { awaitCriu, Criu } from './criu.js';
import { type Expected, examineImages, examineProcess, threadsIn } from './examination.js';
import { pack, readBegin, unpack } from './images.js';
import { ParkedProcess, type ReturnedArena } from './parked-process.js';
import { givePipes } from './pipes.js';
import { KEY_BYTES, type Key, SealedReader, SealedWriter } from './sealed-file.js';
import { makeKernelDirectory, mostOfDump, Staging } from './staging.js';

interface CheckpointOptions {
  readonly directory: AllocationDirectory;
  readonly host: AllocationHost;
  readonly logger: Logger;
  readonly suspension: Pick<Suspension, 'suspend' | 'whileSuspended' | 'mostOf'>;
  /** The live sessions. */
  sessions(): readonly LiveSession[];
  /** The node no longer suspends it, and the record of the checkpoint goes. @throws ProxyError */
  resume(): Promise<unknown>;
}

/** A session whose process is in memory again, parked. */
interface Returned {
  readonly live: LiveSession;
  readonly arenas: readonly ReturnedArena[];
}

/** Bytes reserved for the log of CRIU. */
const LOG = 16 * 2 ** 20;
/** The fraction of a file system that stays free. */
const RESERVE = 0.05;
const KEY = 'checkpoint-key';
/** Subdirectory of the state directory, with all checkpoints of a Kubernetes node. */
const CHECKPOINTS = 'checkpoints';

/**
 * Writes the programs' side of the GPU to files, and makes it again: the workers of all sessions,
 * and the GPU memory that has left. The programs themselves live on, and their CUDA calls wait. All
 * or nothing: `checkpoint` of the specification says `writing` until all files are written and then
 * `file`. So the next gpu-proxy knows whether the workers or the files count.
 */
export class Checkpoint {
  readonly #options: CheckpointOptions;
  /** The directory to which it is being written. */
  #target: string | undefined;
  #ended = false;

  constructor(options: CheckpointOptions) {
    this.#options = options;
  }

  /**
   * @param target path of a directory that does not exist
   * @param given undefined: this node makes a key, and keeps it
   * @throws ProxyError its programs go on, but for those that it counts
   */
  async write(target: string, given: Key | undefined): Promise<void> {
    const other = this.#record?.directory ?? this.#target;
    if (other !== undefined) throw this.#refusal(target, `it is in ${other} already`);
    this.#target = target;
    try {
      const wrong = given !== undefined && given.length !== KEY_BYTES;
      if (wrong) throw new Error(`its key does not have ${KEY_BYTES} bytes`);
      const criu = await this.#admit(target);
      await this.#suspendAndWrite(target, criu, given);
    } catch (error) {
      throw error instanceof ProxyError ? error : this.#refusal(target, systemReason(error));
    } finally {
      this.#target = undefined;
    }
  }

  /**
   * @param given undefined: the key that this node keeps
   * @throws ProxyError all stays in its files, except after a session that could not go on
   */
  async read(given: Key | undefined): Promise<void> {
    const { suspension } = this.#options;
    const record = this.#record;
    if (!record) throw new ProxyError('CHECKPOINT_UNKNOWN', { directory: 'a file' });
    try {
      await suspension.whileSuspended(() => this.#readOrUndo(record.directory, given));
    } catch (error) {
      throw this.#notRestored(record, error);
    }
    await this.#goOn(record);
  }

  /** An earlier gpu-proxy may have been killed at any step. */
  takeOver(): void {
    const record = this.#record;
    if (!record) return;
    const { suspension, logger } = this.#options;
    suspension
      .whileSuspended(() => this.#settle(record))
      .then(async (isBack) => {
        if (isBack) await this.#goOn(record);
      })
      .catch((error) => logger.error((error as Error).message));
  }

  /** @returns whether each session has its worker again */
  async #settle(record: CheckpointRecord): Promise<boolean> {
    for (const live of this.#inFiles) await awaitCriu(nameOf(live));
    if (record.stage === 'file') await this.#finishWriting();
    else await this.#undo(record);
    const isEmpty = record.stage === 'file' && this.#options.sessions().length === 0;
    return !isEmpty && this.#removeIfBack(record);
  }

  /** This gpu-proxy leaves the allocation. */
  leave(): void {
    this.#ended = true;
  }

  /** The allocation ends. Its files are of programs that have ended. */
  end(): void {
    this.leave();
    const record = this.#record;
    if (record) this.#removeFiles(record.directory);
  }

  get #specification(): AllocationSpecification {
    return this.#options.directory.specification;
  }

  get #record(): CheckpointRecord | undefined {
    return this.#specification.checkpoint;
  }

  /** Whether the node suspends it, beside others. */
  get #isSuspended(): boolean {
    const { suspended = false, suspendedBy } = this.#specification;
    return suspendedBy?.includes('node') ?? suspended;
  }

  get #keyFile(): string {
    return path.join(this.#options.directory.path, KEY);
  }

  #save(checkpoint: CheckpointRecord | undefined): void {
    const { directory } = this.#options;
    if (this.#ended) throw new ProxyError('ALLOCATION_UNKNOWN', { name: this.#specification.id });
    directory.save({ ...directory.specification, checkpoint });
  }

  #refusal(directory: string, reason: string, ended = 0): ProxyError {
    const outcome =
      ended === 0
        ? 'Its programs go on as before'
        : `${ended} of its programs could not go on, and ended: see the log of gpu-proxy`;
    const { id } = this.#specification;
    return new ProxyError('CHECKPOINT_REFUSED', { id, directory, reason, outcome });
  }

  #notRestored({ directory }: CheckpointRecord, error: unknown): ProxyError {
    if (error instanceof ProxyError) return error;
    const reason = systemReason(error);
    return new ProxyError('CHECKPOINT_NOT_RESTORED', {
      ...{ id: this.#specification.id, directory, reason },
    });
  }

  async #admit(target: string): Promise<Criu> {
    const why = this.#whyNot() ?? this.#whyLost(target) ?? whyExposed(path.dirname(target));
    if (why !== undefined) throw new Error(why);
    return await this.#findCriu();
  }

  /** A container has directories of its own, which end with it. */
  #whyLost(target: string): string | undefined {
    const { allocations } = this.#options.host.launcher;
    if (allocations === undefined) return undefined;
    const parent = path.join(path.dirname(allocations), CHECKPOINTS);
    mkdirSync(parent, { recursive: true, mode: 0o700 });
    return path.dirname(target) === parent
      ? undefined
      : `others than those in ${parent} may end with the container of gpu-proxy`;
  }

  async #findCriu(): Promise<Criu> {
    const { launcher } = this.#options.host;
    return Criu.find(launcher, workerProgram(this.#options), makeKernelDirectory(launcher));
  }

  #whyNot(): string | undefined {
    const { arenas } = this.#options.host;
    if (process.getuid?.() !== 0) return 'gpu-proxy is not root';
    if (arenas.limit === 0) return 'hostMemory is 0';
    const starting = this.#options.sessions().some(({ session }) => !session.introduced);
    return starting ? 'a program is just starting' : undefined;
  }

  /** The suspension and the record come and go together, so that no kill leaves one of them. */
  async #suspendAndWrite(directory: string, criu: Criu, given: Key | undefined): Promise<void> {
    const { suspension } = this.#options;
    const key = given ?? randomBytes(KEY_BYTES);
    const about = { directory, resumes: !this.#isSuspended, driver: driverVersion() };
    const record = { ...about, stage: 'writing' } as const;
    await suspension.suspend('node', { checkpoint: record });
    try {
      const way = { criu, key, kept: given === undefined };
      await suspension.whileSuspended(() => this.#writeAll(record, way));
    } catch (error) {
      if (this.#record?.stage === 'writing' && this.#inFiles.length === 0) await this.#goOn(record);
      throw error;
    }
  }

  async #writeAll(
    record: CheckpointRecord,
    way: { criu: Criu; key: Key; kept: boolean },
  ): Promise<void> {
    const { directory } = record;
    const { key, kept } = way;
    mkdirSync(directory, { mode: 0o700 });
    try {
      for (const live of this.#options.sessions()) await this.#writeOne(live, directory, way);
      if (kept) writeFileAtomically(this.#keyFile, key.toString('hex'), { durable: true });
      syncToDisk(directory);
      this.#save({ ...record, stage: 'file' });
    } catch (error) {
      const ended = await this.#undo(record);
      throw this.#refusal(directory, systemReason(error), ended);
    }
    await this.#finishWriting();
  }

  async #writeOne(
    live: LiveSession,
    directory: string,
    { criu, key }: { criu: Criu; key: Key },
  ): Promise<void> {
    const { host } = this.#options;
    const name = nameOf(live);
    const parked = this.#processOf(live);
    const expected = parked.expected(this.#specification.uid);
    await parked.park();
    await examineProcess(expected);
    const staging = await Staging.make(await mostOfDump(expected.pid), host);
    try {
      await dump(criu, expected, { name, staging });
      examineImages(staging.directory, expected);
      const file = path.join(directory, name);
      const writer = await SealedWriter.create(file, key, name);
      try {
        const admit = (bytes: number) => requireRoom(directory, bytes);
        await pack(staging.directory, live.arena.handles, { writer, addon: host.addon, admit });
        await writer.finish();
      } finally {
        await writer.close();
      }
    } finally {
      staging.close();
    }
  }

  /** The files count from now on, so the workers end. A session may end meanwhile. */
  async #finishWriting(): Promise<void> {
    for (const live of this.#options.sessions())
      await this.#processOf(live)
        .leave()
        .catch((error) =>
          live.session.logger.warn(`The worker in a file goes on: ${systemReason(error)}.`),
        );
  }

  /**
   * The workers count: they go on as before. The files go first: they may fill the disk.
   * @returns how many sessions could not go on, and ended
   */
  async #undo({ directory }: CheckpointRecord): Promise<number> {
    this.#removeFiles(directory);
    let ended = 0;
    for (const live of this.#options.sessions()) {
      const reason = await this.#processOf(live).unpark();
      if (reason === undefined) continue;
      live.session.logger.error(`The session ends, because it cannot go on: ${reason}.`);
      live.kill();
      ended++;
    }
    return ended;
  }

  /** Each session has its worker again. */
  async #goOn({ resumes }: CheckpointRecord): Promise<void> {
    if (this.#ended) return;
    if (resumes) await this.#options.resume();
    else this.#save(undefined);
  }

  #processOf(live: LiveSession): ParkedProcess {
    return new ParkedProcess(live, this.#options.host);
  }

  /**
   * Removes nothing else: an earlier gpu-proxy may have been killed before it found that the
   * directory existed. Nobody needs them, so a failure is none of what the caller does.
   */
  #removeFiles(directory: string): void {
    try {
      rmSync(this.#keyFile, { force: true });
      if (!existsSync(directory)) return;
      for (const name of this.#filesIn(directory)) rmSync(path.join(directory, name));
      rmdirSync(directory);
    } catch (error) {
      this.#options.logger.warn(`Remove ${directory} yourself: ${systemReason(error)}.`);
    }
  }

  /** Names of the files of all sessions, of ended ones too. */
  #filesIn(directory: string): string[] {
    const { id } = this.#specification;
    return readdirSync(directory).filter((name) => name.startsWith(`${id}-session-`));
  }

  #keptKey(): Key {
    const text = readIfThere(this.#keyFile);
    if (text === undefined) throw new Error('the node does not have its key: use --key-file');
    return Buffer.from(text, 'hex');
  }

  /** Programs that have ended need no files. */
  async #readOrUndo(directory: string, given: Key | undefined): Promise<void> {
    const record = this.#record;
    if (record?.directory !== directory) throw new Error('it was restored meanwhile');
    if (record.stage === 'writing') {
      await this.#undo(record); // that has failed before
      return;
    }
    if (this.#removeIfBack(record)) return;
    const key = given ?? this.#keptKey();
    requireDriver(record.driver);
    const criu = await this.#findCriu();
    await this.#readAll(record, { criu, key });
  }

  /** One after the other: the files of CRIU take memory of the node. */
  async #readAll(record: CheckpointRecord, way: { criu: Criu; key: Key }): Promise<void> {
    const returned: Returned[] = [];
    try {
      for (const live of this.#inFiles) {
        const arenas: ReturnedArena[] = [];
        returned.push({ live, arenas });
        await this.#readOne(live, { ...way, directory: record.directory, arenas });
      }
    } catch (error) {
      for (const { live } of returned) this.#processOf(live).endStray();
      for (const { arenas } of returned) for (const { file } of arenas) file.close();
      throw error;
    }
    const reasons: string[] = [];
    for (const { live, arenas } of returned) {
      const reason = await this.#processOf(live).takeBack(arenas);
      for (const { file } of arenas) file.close();
      if (reason !== undefined) reasons.push(reason);
    }
    if (!this.#removeIfBack(record))
      throw new Error(reasons[0] ?? 'a program is still in its file');
  }

  async #readOne(
    live: LiveSession,
    from: { criu: Criu; key: Key; directory: string; arenas: ReturnedArena[] },
  ): Promise<void> {
    const name = nameOf(live);
    const file = path.join(from.directory, name);
    const reader = await reading(file, SealedReader.open(file, from.key, name));
    try {
      const bytes = await reading(file, readBegin(reader));
      // The process that is made has as many, too.
      const staging = await Staging.make(bytes + LOG, this.#options.host, bytes);
      try {
        await reading(file, unpack(reader, staging.directory, this.#memoryFor(from)));
        await this.#make(live, staging.directory, from.criu).catch((error) => {
          if (!live.over) throw error; // else its program has ended meanwhile
        });
      } finally {
        staging.close();
      }
    } finally {
      await reader.close();
    }
  }

  async #make(live: LiveSession, directory: string, criu: Criu): Promise<void> {
    const process = this.#processOf(live);
    await process.freeIds(threadsIn(directory));
    await criu.restore({ name: nameOf(live), directory, purpose: this.#roomOf(live) });
    process.noteRestored();
    const expected = process.expected(this.#specification.uid);
    await examineProcess(expected);
    if (expected.uid !== undefined) givePipes(expected.pid, expected.uid);
  }

  /** The room of the restored process. */
  #roomOf({ session: { record } }: LiveSession) {
    const { directory, host } = this.#options;
    return {
      tenant: tenantOf({ directory, record }),
      makes: workerProgram(this.#options),
      cache: host.ownCaches ? directory.cache : undefined,
    };
  }

  /** True if no session is in a file any more. The workers count before the files go. */
  #removeIfBack(record: CheckpointRecord): boolean {
    if (this.#inFiles.length > 0) return false;
    if (record.stage === 'file') this.#save({ ...record, stage: 'writing' });
    this.#removeFiles(record.directory);
    return true;
  }

  /** The parked sessions, without those that gpu-proxy has killed. */
  get #inFiles(): LiveSession[] {
    const isParked = ({ session: { record, killed } }: LiveSession) => record.parked && !killed;
    return this.#options.sessions().filter(isParked);
  }

  #memoryFor({ directory, arenas }: { directory: string; arenas: ReturnedArena[] }) {
    const { host, suspension } = this.#options;
    const { id } = this.#specification;
    const most = suspension.mostOf(this.#filesIn(directory).length);
    return {
      makeArena: async (bytes: number, inode: string) => {
        const wanted = { id, sizes: [bytes], again: 0, most };
        for (const file of await host.arenas.make(wanted)) arenas.push({ file, inode });
        return (arenas.at(-1) as ReturnedArena).file.fd;
      },
      populate: async (fd: number, bytes: number) => {
        ftruncateSync(fd, bytes);
        const { launcher, installation } = host;
        await populate(fd, bytes, { launcher, executable: installation.arena }).done;
      },
    };
  }
}

function reading<T>(file: string, result: Promise<T>): Promise<T> {
  return result.catch((error) => {
    if (error instanceof ProxyError) throw error;
    throw new Error(`${file} cannot be read: ${systemReason(error)}`);
  });
}

/** Writes a worker to files. */
async function dump(
  criu: Criu,
  { pid, uid }: Expected,
  { name, staging }: { name: string; staging: Staging },
): Promise<void> {
  const { directory, bytes } = staging;
  const dumped = criu.dump(pid, { name, directory, purpose: { writes: pid, uid } });
  await dumped.catch((error) => {
    if (!staging.isFull) throw error;
    const most = formatMemorySize(bytes);
    throw new Error(`its worker ${pid} has more memory than the ${most} that the kernel reported`);
  });
}

/** Pods of the node need room on its disk, too. @throws Error if there is not enough */
function requireRoom(directory: string, bytes: number): void {
  const { bsize, blocks, bavail } = statfsSync(directory);
  const reserve = Math.floor(blocks * RESERVE);
  const left = Math.max(0, bavail - reserve) * bsize;
  if (bytes <= left) return;
  const [needed, had, kept] = [bytes, left, reserve * bsize].map(formatMemorySize);
  throw new Error(
    `${directory} has room for ${had}, without ${kept} that stay free, not ${needed}`,
  );
}

function nameOf({ session }: LiveSession): string {
  return `${session.record.allocation}-session-${session.record.number}`;
}

/** Whether others could exchange a directory in this one, or this one itself. */
function whyExposed(parent: string): string | undefined {
  const real = realpathSync(parent);
  if (real !== parent) return `${parent} leads through a link: use ${real}`;
  const above = path.dirname(parent);
  if (isExposed(parent)) return `${parent} is not of root alone`;
  return above === parent ? undefined : whyExposed(above);
}

/** A sticky bit keeps others from what is not theirs. */
function isExposed(directory: string): boolean {
  const { mode, uid } = statSync(directory);
  const writable = (mode & 0o022) !== 0 && (mode & 0o1000) === 0;
  return uid !== 0 || writable;
}

/** The process has the code of the driver mapped from its file. */
function requireDriver(version: string): void {
  const present = driverVersion();
  if (present !== version)
    throw new Error(
      `it was written with driver ${version}, and the node has ${present}. Install ${version}`,
    );
}

/** Of NVIDIA's kernel module. */
function driverVersion(): string {
  try {
    return readFileSync('/sys/module/nvidia/version', 'utf8').trim();
  } catch {
    return 'none';
  }
}
