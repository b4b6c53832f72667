import { closeSync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';

/** Read at once: a writer that is faster than we are must not keep everybody else waiting. */
const CHUNK = 64 * 1024;
/** Of what its writer left behind. */
const LAST_BYTES = 4 * 1024 * 1024;
/** A line that is longer is none of ours; its first part is given out, the rest is not. */
const LONGEST_LINE = 64 * 1024;

/** Reads the lines that another process appends to a file, from the start. */
export class LineFollower {
  readonly #fd: number;
  readonly #take: (line: string) => void;
  #decoder = new StringDecoder('utf8');
  #offset = 0;
  #rest = '';
  /** The line of which `rest` is a part was given out, as far as it is. */
  #cut = false;

  constructor(file: string, take: (line: string) => void) {
    this.#fd = openSync(file, 'r+');
    this.#take = take;
  }

  /** Bytes of the file as it is now. */
  get size(): number {
    return fstatSync(this.#fd).size;
  }

  /** Hands on the lines that are complete by now, of a part that is read at once. True when there may be more. */
  read(): boolean {
    const buffer = Buffer.allocUnsafe(CHUNK);
    const bytes = readSync(this.#fd, buffer, 0, CHUNK, this.#offset);
    this.#offset += bytes;
    this.#split(this.#rest + this.#decoder.write(buffer.subarray(0, bytes)));
    return bytes === CHUNK;
  }

  /**
   * Empties the file once that much was read: its writer appends, and whoever keeps what was read needs it no more. A writer that is far ahead
   * is not followed.
   */
  limit(bytes: number): void {
    const { size } = this;
    if (this.#offset < bytes && size < 4 * bytes) return;
    // What comes next is not the end of a line whose middle goes now.
    if (size > this.#offset) this.#forgetRest();
    ftruncateSync(this.#fd);
    this.#offset = 0;
  }

  /** The writer is gone: its last line counts also without an end. */
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
