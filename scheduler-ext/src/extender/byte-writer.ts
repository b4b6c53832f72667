const FIRST_SIZE = 64 * 1024;
/** What is longer is copied as a whole: for so few bytes the call takes longer than a loop. */
const FEW = 48;

/**
 * Puts small pieces of bytes one behind the other: faster by far than to make a string of thousands of pieces and then bytes of it. Memory outside
 * of the heap is dear to make and to collect, so one is kept and cleared.
 */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(FIRST_SIZE);
  #length = 0;

  /** The bytes from `start` to before `end`. */
  write(bytes: Uint8Array, start = 0, end = bytes.length): void {
    if (this.#length + end - start > this.#bytes.length) this.#grow(end - start);
    const written = this.#bytes;
    let length = this.#length;
    if (end - start > FEW) written.set(end - start === bytes.length ? bytes : bytes.subarray(start, end), length);
    else for (let at = start; at < end; at++) written[length++] = bytes[at] as number;
    this.#length += end - start;
  }

  clear(): void {
    this.#length = 0;
  }

  get length(): number {
    return this.#length;
  }

  /** Until more is written. */
  get written(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #grow(more: number): void {
    const larger = Buffer.allocUnsafe(2 * this.#bytes.length + more);
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
