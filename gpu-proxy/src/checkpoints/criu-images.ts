import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

/** A message of protocol buffers: values by the number of their field. */
export class Fields {
  readonly #values: readonly (readonly [number, number | Buffer])[];

  /** @throws RangeError if the message is cut off, Error if it is malformed */
  constructor(message: Buffer) {
    const reader = new FieldReader(message);
    const values: [number, number | Buffer][] = [];
    while (!reader.isAtEnd) values.push(reader.next());
    this.#values = values;
  }

  /** All integers of a field, packed or not. */
  numbers(field: number): number[] {
    return this.#of(field).flatMap((value) =>
      typeof value === 'number' ? [value] : unpackNumbers(value),
    );
  }

  /** Undefined if it is missing. */
  number(field: number): number | undefined {
    return this.numbers(field).at(-1);
  }

  text(field: number): string | undefined {
    return this.#bytes(field).at(-1)?.toString();
  }

  messages(field: number): Fields[] {
    return this.#bytes(field).map((bytes) => new Fields(bytes));
  }

  #bytes(field: number): Buffer[] {
    return this.#of(field).filter((value) => typeof value !== 'number');
  }

  #of(field: number): (number | Buffer)[] {
    return this.#values.flatMap(([each, value]) => (each === field ? [value] : []));
  }
}

class FieldReader {
  readonly #message: Buffer;
  #at = 0;

  constructor(message: Buffer) {
    this.#message = message;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#message.length;
  }

  next(): [number, number | Buffer] {
    const tag = this.varint();
    const [field, kind] = [Math.floor(tag / 8), tag % 8];
    if (kind === 0) return [field, this.varint()];
    if (kind === 1) return [field, this.#take(8)];
    if (kind === 2) return [field, this.#take(this.varint())];
    if (kind === 5) return [field, this.#take(4)];
    throw new Error(`a file of CRIU has a field of the unknown kind ${kind}`);
  }

  /** Beyond 53 bits it is not exact. */
  varint(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#message.readUInt8(this.#at++);
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  }

  #take(bytes: number): Buffer {
    const end = this.#at + bytes;
    if (end > this.#message.length) throw new RangeError('a file of CRIU is cut off');
    const taken = this.#message.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }
}

function unpackNumbers(bytes: Buffer): number[] {
  const reader = new FieldReader(bytes);
  const numbers: number[] = [];
  while (!reader.isAtEnd) numbers.push(reader.varint());
  return numbers;
}

const MAGIC_BYTES = 8;
const LENGTH_BYTES = 4;

/** An open file takes about 100 bytes in them. */
const MOST_BYTES = 4 * 2 ** 20;

/**
 * The entries of a file of CRIU: two magic numbers, then each message after its length.
 * @throws Error if the file is malformed, or larger than a worker makes it
 */
export function* readEntries(file: string): Generator<Fields, void> {
  if (statSync(file).size > MOST_BYTES)
    throw new Error(`the file ${path.basename(file)} of CRIU has more than ${MOST_BYTES} bytes`);
  const all = readFileSync(file);
  for (let at = MAGIC_BYTES; at < all.length; ) {
    const begin = at + LENGTH_BYTES;
    at = begin + all.readUInt32LE(at);
    yield new Fields(all.subarray(begin, at));
  }
}

/** Names of the files with such a beginning, in a directory of CRIU. */
export function filesOf(directory: string, beginning: string): string[] {
  return readdirSync(directory)
    .filter((name) => name.startsWith(beginning))
    .map((name) => path.join(directory, name));
}
