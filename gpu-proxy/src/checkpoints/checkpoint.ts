import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import path from 'node:path';
import type { AllocationSpecification, CheckpointRecord } from '@nvidia-virtual/ledger';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { readIfThere, syncToDisk, writeFileAtomically } from '@nvidia-virtual/service/files';
import type { Logger } from 'pino';
import type { AllocationDirectory } from '../allocations/allocation-directory.js';
import type { AllocationHost } from '../allocations/allocation-host.js';
import type { Suspension } from '../allocations/suspension.js';
import type { MemoryFile } from '../arenas/memory-file.js';
import type { LiveSession } from '../sessions/live-session.js';
import { awaitCriu, Criu } from './criu.js';
import { pack, unpack } from './images.js';
import { ParkedProcess } from './parked-process.js';
import { KEY_BYTES, type Key, SealedReader, SealedWriter } from './sealed-file.js';
import { makeStaging, removeStagings, stagingOf } from './staging.js';

interface CheckpointOptions {
  readonly directory: AllocationDirectory;
  readonly host: Pick<AllocationHost, 'addon' | 'arenas' | 'backend' | 'installation' | 'launcher'>;
  readonly logger: Logger;
  readonly suspension: Pick<Suspension, 'suspend' | 'whileSuspended'>;
  /** The live sessions. */
  sessions(): readonly LiveSession[];
  /** The node no longer suspends it, and the record of the checkpoint goes. @throws ProxyError */
  resume(): Promise<unknown>;
}

/** A session whose process is in memory again, parked. */
interface Returned {
  readonly live: LiveSession;
  readonly arenas: readonly MemoryFile[];
}

const KEY = 'checkpoint-key';

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
   * @throws ProxyError nothing has changed
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
    for (const live of this.#inFiles) await awaitCriu(stagingOf(nameOf(live)));
    removeStagings(this.#specification.id);
    if (record.stage === 'file') await this.#finishWriting();
    else await this.#undo(record);
    const isEmpty = record.stage === 'file' && this.#options.sessions().length === 0;
    return !isEmpty && this.#removeIfBack(record);
  }

  /** The allocation ends, or this gpu-proxy leaves it. */
  end(): void {
    this.#ended = true;
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

  #refusal(directory: string, reason: string): ProxyError {
    return new ProxyError('CHECKPOINT_REFUSED', { id: this.#specification.id, directory, reason });
  }

  #notRestored({ directory }: CheckpointRecord, error: unknown): ProxyError {
    if (error instanceof ProxyError) return error;
    const reason = systemReason(error);
    return new ProxyError('CHECKPOINT_NOT_RESTORED', {
      ...{ id: this.#specification.id, directory, reason },
    });
  }

  async #admit(target: string): Promise<Criu> {
    const why = this.#whyNot() ?? whyExposed(path.dirname(target));
    if (why !== undefined) throw new Error(why);
    return await Criu.find(this.#options.host.launcher);
  }

  #whyNot(): string | undefined {
    const { launcher, arenas } = this.#options.host;
    if (this.#specification.owner) return 'it belongs to a pod';
    if (launcher.allocations !== undefined)
      return 'the workers of a Kubernetes node have namespaces of their own, which stay';
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
      await this.#undo(record);
      throw error;
    }
    await this.#finishWriting();
  }

  async #writeOne(
    live: LiveSession,
    directory: string,
    { criu, key }: { criu: Criu; key: Key },
  ): Promise<void> {
    const { addon } = this.#options.host;
    const name = nameOf(live);
    await this.#processOf(live).park();
    const staging = makeStaging(name);
    try {
      await criu.dump(live.session.record.worker.pid, staging);
      const file = path.join(directory, name);
      const writer = await SealedWriter.create(file, key, name);
      try {
        await pack(staging, live.arena.handles, { writer, addon });
        await writer.finish();
      } finally {
        await writer.close();
      }
    } finally {
      rmSync(staging, { recursive: true, force: true });
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

  /** The workers count: they go on as before. The files go first: they may fill the disk. */
  async #undo({ directory }: CheckpointRecord): Promise<void> {
    this.#removeFiles(directory);
    for (const live of this.#options.sessions()) {
      const reason = await this.#processOf(live).unpark();
      if (reason === undefined) continue;
      live.session.logger.error(`The session ends, because it cannot go on: ${reason}.`);
      live.kill();
    }
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
      for (const name of readdirSync(directory).filter((each) =>
        isNameOf(this.#specification, each),
      ))
        rmSync(path.join(directory, name));
      rmdirSync(directory);
    } catch (error) {
      this.#options.logger.warn(`Remove ${directory} yourself: ${systemReason(error)}.`);
    }
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
    if (record.stage === 'writing') return this.#undo(record); // that has failed before
    if (this.#removeIfBack(record)) return;
    const key = given ?? this.#keptKey();
    requireDriver(record.driver);
    const criu = await Criu.find(this.#options.host.launcher);
    await this.#readAll(record, { criu, key });
  }

  async #readAll(record: CheckpointRecord, way: { criu: Criu; key: Key }): Promise<void> {
    const returned: Returned[] = [];
    const stagings: string[] = [];
    try {
      for (const live of this.#inFiles) {
        const staging = makeStaging(nameOf(live));
        stagings.push(staging);
        const arenas: MemoryFile[] = [];
        returned.push({ live, arenas });
        await this.#unpack(live, { directory: record.directory, key: way.key, staging, arenas });
      }
      for (const [index, { live }] of returned.entries()) {
        const process = this.#processOf(live);
        await process.freePid();
        await way.criu.restore(stagings[index] as string);
        process.noteRestored();
      }
    } catch (error) {
      for (const { live } of returned) this.#processOf(live).endStray();
      for (const { arenas } of returned) for (const arena of arenas) arena.close();
      throw error;
    } finally {
      for (const staging of stagings) rmSync(staging, { recursive: true, force: true });
    }
    const reasons: string[] = [];
    for (const { live, arenas } of returned) {
      const reason = await this.#processOf(live).takeBack(arenas);
      for (const arena of arenas) arena.close();
      if (reason !== undefined) reasons.push(reason);
    }
    if (!this.#removeIfBack(record))
      throw new Error(reasons[0] ?? 'a program is still in its file');
  }

  /** True if no session is in a file any more. The workers count before the files go. */
  #removeIfBack(record: CheckpointRecord): boolean {
    if (this.#inFiles.length > 0) return false;
    if (record.stage === 'file') this.#save({ ...record, stage: 'writing' });
    this.#removeFiles(record.directory);
    return true;
  }

  /** Those that are in a file, or on the way, and do not end just now. */
  get #inFiles(): LiveSession[] {
    const isParked = ({ session: { record, killed } }: LiveSession) => record.parked && !killed;
    return this.#options.sessions().filter(isParked);
  }

  async #unpack(
    live: LiveSession,
    to: { directory: string; key: Key; staging: string; arenas: MemoryFile[] },
  ): Promise<void> {
    const { id } = this.#specification;
    const name = nameOf(live);
    const file = path.join(to.directory, name);
    const reader = await SealedReader.open(file, to.key, name).catch((error) => {
      throw new Error(`${file} cannot be read: ${systemReason(error)}`);
    });
    try {
      await unpack(reader, to.staging, async (bytes) => {
        const wanted = { id, sizes: [bytes], again: 0, most: Number.POSITIVE_INFINITY };
        const [arena] = await this.#options.host.arenas.make(wanted);
        to.arenas.push(arena as MemoryFile);
        return (arena as MemoryFile).fd;
      });
    } catch (error) {
      if (error instanceof ProxyError) throw error;
      throw new Error(`${file} cannot be read: ${systemReason(error)}`);
    } finally {
      await reader.close();
    }
  }
}

function isNameOf({ id }: AllocationSpecification, file: string): boolean {
  return file.startsWith(`${id}-session-`);
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
