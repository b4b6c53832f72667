import { WORD, Words } from '../words.js';

const FIRST_SIZE = 64 * 1024;

/**
 * Puts small pieces of bytes one behind the other, a word at a time: faster by far than to make a string of thousands of pieces and then bytes of
 * it, and than one byte at a time. Memory outside of the heap is dear to make and to collect, so one is kept and cleared.
 */
export class ByteWriter {
  #words = new Words(FIRST_SIZE);
  #length = 0;

  /** The bytes from `start` to before `end`. */
  write({ view, length }: Words, start = 0, end = length): void {
    const written = this.#length + end - start;
    if (written > this.#words.length) this.#grow(written);
    const own = this.#words.view;
    for (let from = start, to = this.#length; from < end; from += WORD, to += WORD) own.setInt32(to, view.getInt32(from, true), true);
    this.#length = written;
  }

  clear(): void {
    this.#length = 0;
  }

  get length(): number {
    return this.#length;
  }

  /** Until more is written. */
  get written(): Buffer {
    return this.#words.bytes(0, this.#length);
  }

  #grow(least: number): void {
    const larger = new Words(2 * least);
    larger.bytes().set(this.written);
    this.#words = larger;
  }
}
