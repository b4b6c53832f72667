import { readIfThere, writeFileAtomically } from '@nvidia-virtual/service/files';
import type { WorkerAnswer, WorkerCommand } from '../workers/worker-commands.js';
import type { ArenaHolder, Arenas } from './arenas.js';
import type { MemoryFile } from './memory-file.js';

interface SessionArenaOptions {
  readonly arenas: Pick<Arenas, 'add' | 'remove' | 'adopt'>;
  /** Its record. */
  readonly file: string;
  /** Whether the memory of the session is on the GPU, and stays there. */
  idle(): boolean;
  send(command: WorkerCommand, timeoutMs: number, file?: number): Promise<WorkerAnswer>;
}

/** Content of the record. Bytes. */
interface ArenaRecord {
  /** Size of the arena that the worker has; 0: none, or unknown. */
  readonly size: number;
  /** GPU memory in it. */
  readonly out: number;
  /** Sizes of all arenas that the session may have. Written before one is handed over. */
  readonly held: number;
}

const NOTHING: ArenaRecord = { size: 0, out: 0, held: 0 };
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
  /** Those of this gpu-proxy that the kernel has not freed. */
  readonly #files = new Set<MemoryFile>();
  #record: ArenaRecord;
  /** Arenas of an earlier gpu-proxy. They count until the end of the session. */
  readonly #adopted: number;
  #detached = false;

  constructor(options: SessionArenaOptions) {
    this.#options = options;
    this.#record = read(options.file);
    this.#adopted = this.#record.held;
    options.arenas.adopt(this.#adopted);
    options.arenas.add(this);
  }

  /** Bytes of GPU memory in it. */
  get outBytes(): number {
    return this.#record.out;
  }

  /** Whether its memory may be out. */
  get mayBeOut(): boolean {
    return this.#record.held > 0;
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

  /** Lets the worker give up its arena, and waits until the kernel has freed it. */
  async dropArena(): Promise<void> {
    const { size } = this.#record;
    if (size === 0) return;
    this.#save({ ...this.#record, size: 0 });
    await this.#options.send('drop', moveMs(size));
    await within(FREED_MS, Promise.all([...this.#files].map(({ freed }) => freed)));
  }

  /** The session has ended. */
  end(): void {
    this.#options.arenas.adopt(-this.#adopted);
    this.detach();
  }

  /** The next gpu-proxy writes the record. */
  detach(): void {
    this.#detached = true;
    this.#options.arenas.remove(this);
  }

  #hold(file: MemoryFile): void {
    this.#files.add(file);
    this.#save({ ...this.#record, size: 0, held: this.#record.held + file.size });
    void file.freed.then(() => {
      this.#files.delete(file);
      this.#save({ ...this.#record, held: this.#record.held - file.size });
    });
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
