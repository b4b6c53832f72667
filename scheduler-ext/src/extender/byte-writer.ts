const FIRST_SIZE = 64 * 1024;

/** Puts small pieces of bytes one behind the other: faster by far than to make a string of thousands of pieces and then bytes of it. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(FIRST_SIZE);
  #length = 0;

  /** The bytes from `start` to before `end`. */
  write(bytes: Uint8Array, start = 0, end = bytes.length): void {
    if (this.#length + end - start > this.#bytes.length) this.#grow(end - start);
    const written = this.#bytes;
    let length = this.#length;
    // A loop: for so few bytes a call of Buffer's own copy takes longer.
    for (let at = start; at < end; at++) written[length++] = bytes[at] as number;
    this.#length = length;
  }

  get length(): number {
    return this.#length;
  }

  get written(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #grow(more: number): void {
    const larger = Buffer.allocUnsafe(2 * this.#bytes.length + more);
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
