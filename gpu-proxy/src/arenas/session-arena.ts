import { readIfThere, writeFileAtomically } from '@nvidia-virtual/service/files';
import type { WorkerAnswer, WorkerCommand } from '../workers/worker-commands.js';
import type { ArenaHolder, Arenas } from './arenas.js';
import { mappedArenas } from './mapped-arenas.js';
import { type MemoryFile, watchFreed } from './memory-file.js';

interface SessionArenaOptions {
  readonly arenas: Pick<Arenas, 'add' | 'remove' | 'adopt'>;
  /** Its record. */
  readonly file: string;
  /** 0: none yet. */
  readonly workerPid: number;
  /** Whether the memory of the session is on the GPU, and stays there. */
  idle(): boolean;
  send(command: WorkerCommand, timeoutMs: number, file?: number): Promise<WorkerAnswer>;
}

/** A file that the session may have. */
interface HeldFile {
  readonly inode: number;
  readonly size: number;
}

/** Content of the record. Bytes. */
interface ArenaRecord {
  /** Size of the arena that the worker has; 0: none, or unknown. */
  readonly size: number;
  /** GPU memory in it. */
  readonly out: number;
  /** All files that the kernel has not freed. Written before one is handed over. */
  readonly files: readonly HeldFile[];
}

const NOTHING: ArenaRecord = { size: 0, out: 0, files: [] };
const MiB = 2 ** 20;
const GiB = 2 ** 30;
/** Arenas have whole pieces of this size. */
const PIECE = 2 * MiB;
/** Waiting time for the kernel to free a file after its worker gave it up. */
const FREED_MS = 2000;

/** How long a worker may take to move so many bytes: 1 GiB/s. */
export function moveMs(bytes: number): number {
  return Math.ceil((bytes / GiB) * 1000);
}

/** Size of an arena for so many bytes. */
export function arenaSize(bytes: number): number {
  return Math.ceil(bytes / PIECE) * PIECE;
}

/**
 * The arena of one session. It stays with the worker after a resumption, because populating it
 * takes longer than the copies. The record lets the next gpu-proxy know the sum.
 */
export class SessionArena implements ArenaHolder {
  readonly #options: SessionArenaOptions;
  /** Promises of files that resolve when these are freed. */
  readonly #freed = new Map<number, Promise<void>>();
  /** Ends the watches of files of an earlier gpu-proxy. */
  readonly #unwatch: (() => void)[] = [];
  #record: ArenaRecord;
  /** Bytes of files of an earlier gpu-proxy. */
  #adopted = 0;
  #detached = false;

  constructor(options: SessionArenaOptions) {
    this.#options = options;
    this.#record = read(options.file);
    options.arenas.add(this);
    const mapped = this.#record.files.length > 0 ? mappedArenas(options.workerPid) : new Map();
    for (const file of this.#record.files) this.#adopt(file, mapped.get(file.inode));
  }

  /** Bytes of GPU memory in it. */
  get outBytes(): number {
    return this.#record.out;
  }

  /** Whether its memory may be out. */
  get mayBeOut(): boolean {
    return this.#record.files.length > 0;
  }

  get unusedArena(): number {
    return this.#record.out === 0 && this.#options.idle() ? this.#record.size : 0;
  }

  /** Whether it is large enough. */
  holds(bytes: number): boolean {
    return this.#record.size >= bytes;
  }

  /**
   * Moves the GPU memory of a suspended session out.
   * @param file a new arena, which is closed; undefined: it has one that is large enough
   */
  async leave(
    bytes: number,
    file: MemoryFile | undefined,
    timeoutMs: number,
  ): Promise<WorkerAnswer> {
    try {
      if (file) this.#hold(file);
      const answer = await this.#options.send('leave', timeoutMs, file?.fd);
      const size = file?.size ?? this.#record.size;
      if (answer.kind === 'done') this.#save({ ...this.#record, size, out: bytes });
      return answer;
    } finally {
      file?.close();
    }
  }

  /** Its memory is back on the GPU. */
  noteBack(): void {
    if (this.#record.out > 0) this.#save({ ...this.#record, out: 0 });
  }

  /**
   * Lets the worker give up its arena, and waits until the kernel has freed it. A worker refuses
   * while one of its calls does not end.
   */
  async dropArena(): Promise<void> {
    const { size } = this.#record;
    if (size === 0) return;
    this.#save({ ...this.#record, size: 0 });
    const { kind } = await this.#options.send('drop', moveMs(size));
    if (kind === 'refused') return this.#save({ ...this.#record, size });
    await within(FREED_MS, Promise.all(this.#freed.values()));
  }

  /** The session has ended. */
  end(): void {
    this.#options.arenas.adopt(-this.#adopted);
    this.detach();
  }

  /** The next gpu-proxy writes the record. */
  detach(): void {
    this.#detached = true;
    for (const unwatch of this.#unwatch) unwatch();
    this.#options.arenas.remove(this);
  }

  #hold(file: MemoryFile): void {
    const { inode, size } = file;
    this.#save({ ...this.#record, size: 0, files: [...this.#record.files, { inode, size }] });
    this.#freed.set(inode, file.freed);
    void file.freed.then(() => this.#noteFreed(file));
  }

  /**
   * Counts a file of an earlier gpu-proxy. If the worker has not mapped it, it may be anywhere, so
   * it counts until the end of the session.
   */
  #adopt(file: HeldFile, place: string | undefined): void {
    this.#options.arenas.adopt(file.size);
    this.#adopted += file.size;
    if (place === undefined) return;
    try {
      const freed = new Promise<void>((resolve) => {
        this.#unwatch.push(watchFreed(place, resolve));
      });
      this.#freed.set(file.inode, freed);
      void freed.then(() => {
        if (this.#detached) return;
        this.#options.arenas.adopt(-file.size);
        this.#adopted -= file.size;
        this.#noteFreed(file);
      });
    } catch {
      // It was freed meanwhile, or inotify has no watch left.
    }
  }

  #noteFreed({ inode }: HeldFile): void {
    this.#freed.delete(inode);
    const files = this.#record.files.filter((file) => file.inode !== inode);
    try {
      this.#save({ ...this.#record, files });
    } catch {
      // The disk is full. The next gpu-proxy counts the file until the end of the session.
    }
  }

  #save(record: ArenaRecord): void {
    this.#record = record;
    if (!this.#detached) writeFileAtomically(this.#options.file, JSON.stringify(record));
  }
}

function read(file: string): ArenaRecord {
  const text = readIfThere(file);
  return text === undefined ? NOTHING : (JSON.parse(text) as ArenaRecord);
}

function within(milliseconds: number, promise: Promise<unknown>): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const end = new Promise((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  return Promise.race([promise, end]).finally(() => clearTimeout(timer));
}
