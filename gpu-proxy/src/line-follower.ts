import { closeSync, ftruncateSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';

const CHUNK = 64 * 1024;
/** A line that is longer is none of ours; it is given out in pieces. */
const LONGEST_LINE = 1024 * 1024;

/** Reads the lines that another process appends to a file, from the start. */
export class LineFollower {
  readonly #fd: number;
  readonly #take: (line: string) => void;
  readonly #decoder = new StringDecoder('utf8');
  #offset = 0;
  #rest = '';

  constructor(file: string, take: (line: string) => void) {
    this.#fd = openSync(file, 'r+');
    this.#take = take;
  }

  /** Hands on every line that is complete by now. */
  read(): void {
    const buffer = Buffer.allocUnsafe(CHUNK);
    for (let bytes = CHUNK; bytes === CHUNK; ) {
      bytes = readSync(this.#fd, buffer, 0, CHUNK, this.#offset);
      this.#offset += bytes;
      this.#split(this.#rest + this.#decoder.write(buffer.subarray(0, bytes)));
    }
  }

  /** Empties the file once that much was read: its writer appends, and whoever keeps what was read needs it no more. */
  limit(bytes: number): void {
    if (this.#offset < bytes) return;
    ftruncateSync(this.#fd);
    this.#offset = 0;
  }

  /** The writer is gone: its last line counts also without an end. */
  finish(): void {
    this.read();
    if (this.#rest !== '') this.#take(this.#rest);
    this.#rest = '';
    this.close();
  }

  close(): void {
    closeSync(this.#fd);
  }

  #split(text: string): void {
    const lines = text.split('\n');
    this.#rest = lines.pop() as string;
    for (const line of lines) this.#take(line);
    if (this.#rest.length < LONGEST_LINE) return;
    this.#take(this.#rest);
    this.#rest = '';
  }
}
