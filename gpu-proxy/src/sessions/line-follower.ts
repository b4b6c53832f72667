import { closeSync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';

/** Bytes of one read. A fast writer must not block the event loop. */
const CHUNK = 64 * 1024;
/** Limit on bytes read by finish(). */
const LAST_BYTES = 4 * 1024 * 1024;
/** Longer lines are truncated to this. */
const LONGEST_LINE = 64 * 1024;

/** Reads the lines that another process appends to a file, from the start. */
export class LineFollower {
  readonly #fd: number;
  readonly #take: (line: string) => void;
  #decoder = new StringDecoder('utf8');
  #offset = 0;
  #rest = '';
  /** True while the rest of a truncated line is skipped. */
  #cut = false;

  constructor(file: string, take: (line: string) => void) {
    this.#fd = openSync(file, 'r+');
    this.#take = take;
  }

  /** Current size of the file in bytes. */
  get size(): number {
    return fstatSync(this.#fd).size;
  }

  /**
   * Reads one chunk and passes on the complete lines. True if there may be more.
   */
  read(): boolean {
    const buffer = Buffer.allocUnsafe(CHUNK);
    const bytes = readSync(this.#fd, buffer, 0, CHUNK, this.#offset);
    this.#offset += bytes;
    this.#split(this.#rest + this.#decoder.write(buffer.subarray(0, bytes)));
    return bytes === CHUNK;
  }

  /**
   * Truncates the file after `bytes` were read, or if it exceeds 4 times `bytes`; what was not read
   * is lost then. The writer must append.
   */
  limit(bytes: number): void {
    const { size } = this;
    if (this.#offset < bytes && size < 4 * bytes) return;
    // Unread bytes are lost: the next line is not the end of the partial one.
    if (size > this.#offset) this.#forgetRest();
    ftruncateSync(this.#fd);
    this.#offset = 0;
  }

  /** Reads the rest after the writer's exit. The last line may lack a newline. */
  finish(): void {
    for (let left = LAST_BYTES; left > 0 && this.read(); left -= CHUNK);
    if (this.#rest !== '' && !this.#cut) this.#take(this.#rest);
    this.#forgetRest();
    this.close();
  }

  close(): void {
    closeSync(this.#fd);
  }

  #split(text: string): void {
    const lines = text.split('\n');
    this.#rest = lines.pop() as string;
    for (const line of lines) {
      if (!this.#cut) this.#take(line.slice(0, LONGEST_LINE));
      this.#cut = false;
    }
    if (this.#rest.length <= LONGEST_LINE) return;
    if (!this.#cut) this.#take(this.#rest.slice(0, LONGEST_LINE));
    this.#cut = true;
    this.#rest = '';
  }

  #forgetRest(): void {
    this.#rest = '';
    this.#cut = false;
    this.#decoder = new StringDecoder('utf8');
  }
}
