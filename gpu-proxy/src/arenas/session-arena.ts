import { readIfThere, writeFileAtomically } from '@nvidia-virtual/service/files';
import type { WorkerAnswer, WorkerCommand } from '../workers/worker-commands.js';
import type { ArenaHolder, Arenas } from './arenas.js';
import type { MemoryFile } from './memory-file.js';

interface SessionArenaOptions {
  readonly arenas: Pick<Arenas, 'add' | 'remove' | 'end' | 'whenFreed'>;
  /** Id of the allocation. */
  readonly allocation: string;
  /** File with the record of the arena. */
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
  /** The files of the arena. Written before the worker gets one. */
  readonly handles: readonly string[];
}

const NOTHING: ArenaRecord = { size: 0, out: 0, handles: [] };
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
 * takes longer than the copies. The record lets the next gpu-proxy know what is in it.
 */
export class SessionArena implements ArenaHolder {
  readonly #options: SessionArenaOptions;
  #record: ArenaRecord;
  #detached = false;

  constructor(options: SessionArenaOptions) {
    this.#options = options;
    this.#record = read(options.file);
    options.arenas.add(this);
  }

  get allocation(): string {
    return this.#options.allocation;
  }

  /** Bytes of GPU memory in it. */
  get outBytes(): number {
    return this.#record.out;
  }

  /** Whether its memory may be out. */
  get mayBeOut(): boolean {
    return this.#record.handles.length > 0;
  }

  /** The kernel's names of its files. */
  get handles(): readonly string[] {
    return this.#record.handles;
  }

  /** Records that a file has the content, and no process has the arena any more. */
  noteInFile(): void {
    this.#save({ ...this.#record, handles: [] });
  }

  /** Records that the worker has the arena again, in these memory files. */
  noteFromFile(handles: readonly string[]): void {
    this.#save({ ...this.#record, handles });
  }

  /** Bytes of the arena that the worker has. */
  get size(): number {
    return this.#record.size;
  }

  get unusedArena(): number {
    return this.#record.out === 0 && this.#options.idle() ? this.#record.size : 0;
  }

  /** Bytes of the arena without GPU memory in it. */
  get free(): number {
    return Math.max(0, this.#record.size - this.#record.out);
  }

  /**
   * Moves GPU memory of a suspended session out: pieces of at least `bytes`, or all that can leave.
   * @param file is added to the arena, and closed; undefined: the arena is large enough
   */
  async leave(
    bytes: number,
    file: MemoryFile | undefined,
    timeoutMs: number,
  ): Promise<WorkerAnswer> {
    const { size, handles } = this.#record;
    try {
      if (file) this.#save({ ...this.#record, size: 0, handles: [...handles, file.handle] });
      const answer = await this.#options.send(`leave ${bytes}`, timeoutMs, file?.fd);
      if (answer.kind === 'done') this.#noteOut(answer.bytes, size + (file?.size ?? 0));
      return answer;
    } finally {
      file?.close();
    }
  }

  /** Brings pieces of at most `bytes` back to a session that stays suspended. */
  async enter(bytes: number, timeoutMs: number): Promise<WorkerAnswer> {
    const { out } = this.#record;
    // If this gpu-proxy ends meanwhile, the next one expects the memory on the GPU.
    this.#save({ ...this.#record, out: Math.max(0, out - bytes) });
    const answer = await this.#options.send(`enter ${bytes}`, timeoutMs);
    if (answer.kind === 'done') this.#noteOut(answer.bytes, this.#record.size);
    if (answer.kind === 'refused') this.#save({ ...this.#record, out });
    return answer;
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
    const { size, out, handles } = this.#record;
    if (handles.length === 0 || out > 0) return;
    this.#save({ ...this.#record, size: 0 });
    const { kind } = await this.#options.send('drop', moveMs(size));
    if (kind === 'refused') return this.#save({ ...this.#record, size });
    if (kind === 'done') this.#save({ ...this.#record, handles: [] });
    const freed = handles.map((handle) => this.#options.arenas.whenFreed(handle));
    await within(FREED_MS, Promise.all(freed));
  }

  /** The session has ended. */
  end(): void {
    this.#options.arenas.end(this);
    this.#detached = true;
  }

  /** The next gpu-proxy writes the record. */
  detach(): void {
    this.#options.arenas.remove(this);
    this.#detached = true;
  }

  /**
   * The worker is not trusted. An earlier gpu-proxy may not have learnt whether the worker got an
   * arena. Then it is at least as large as what is in it.
   */
  #noteOut(out: number, size: number): void {
    const known = size > 0 || this.#record.handles.length === 0 ? size : out;
    this.#save({ ...this.#record, size: known, out: Math.min(out, known) });
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
