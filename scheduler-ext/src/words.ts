/** Bytes of a word. */
export const WORD = 4;

/** Bytes that are read and written a word at a time, from anywhere: behind the last one there is a word more, of no meaning. */
export class Words {
  readonly view: DataView;

  /** Of `length` bytes; those of `memory`, if there are that many and a word more. */
  constructor(
    readonly length: number,
    memory: Uint8Array = new Uint8Array(length + WORD),
  ) {
    this.view = new DataView(memory.buffer, memory.byteOffset, length + WORD);
  }

  static of(text: string): Words {
    return Words.from(Buffer.from(text));
  }

  /** The same bytes where they are, if that is not at the end of their memory; a copy if it is. */
  static from(bytes: Uint8Array): Words {
    if (bytes.byteOffset + bytes.length + WORD <= bytes.buffer.byteLength) return new Words(bytes.length, bytes);
    const copy = new Words(bytes.length);
    copy.bytes().set(bytes);
    return copy;
  }

  /** Those from `start` to before `end`, where they are. */
  bytes(start = 0, end = this.length): Buffer {
    return Buffer.from(this.view.buffer, this.view.byteOffset + start, end - start);
  }
}
