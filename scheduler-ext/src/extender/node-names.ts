import type { Table } from '../cluster/node-table.js';
import { Words } from '../words.js';
import type { ByteWriter } from './byte-writer.js';

const [QUOTE, COMMA, END] = [0x22, 0x2c, 0x5d];
/** White space between names, and what escapes begin with: kube-scheduler writes neither. */
const UNUSUAL = Buffer.from('\t\n\r \\');
const NO_NAMES = 'its NodeNames are no names of nodes';
const COMMA_ALONE = Words.of(',');

/** A list of names of nodes, as JSON has it. */
export class NodeNames {
  readonly words: Words;
  readonly #start: number;
  readonly #end: number;

  private constructor(words: Words, start: number, end: number) {
    this.words = words;
    this.#start = start;
    this.#end = end;
  }

  /** @throws Error for what is the name of no node */
  static of(names: readonly string[]): NodeNames {
    const bytes = Buffer.from(JSON.stringify(names));
    const list = NodeNames.at(bytes, 1);
    if (list?.end !== bytes.length - 1) throw new Error(NO_NAMES);
    return list.names;
  }

  /**
   * @param start behind the bracket that opens it
   * @returns also where the bracket is that closes it; undefined where it is not written as kube-scheduler writes it. visit() looks closer.
   */
  static at(bytes: Buffer, start: number): { readonly names: NodeNames; readonly end: number } | undefined {
    const end = bytes.indexOf(END, start);
    const list = bytes.subarray(start, end);
    const isPlain = end >= start && !UNUSUAL.some((byte) => list.includes(byte));
    const isQuoted = list.length === 0 || (list.length > 1 && list[0] === QUOTE && list.at(-1) === QUOTE);
    return isPlain && isQuoted ? { names: new NodeNames(Words.from(bytes), start, end), end } : undefined;
  }

  /** @param list what stands between the brackets of another one */
  equals(list: Uint8Array): boolean {
    return this.words.bytes(this.#start, this.#end).equals(list);
  }

  /**
   * @param visit gets the index of each node, or NOBODY, and where its name begins and ends as JSON has it, quotation marks and all
   * @throws Error where it turns out to be no list
   */
  visit(known: Table, visit: (index: number, start: number, end: number) => void): void {
    const { view } = this.words;
    for (let at = this.#start; at < this.#end; at++) {
      if (view.getUint8(at) !== QUOTE || at + 1 === this.#end) throw new Error(NO_NAMES);
      const index = known.find(view, at + 1);
      const end = known.end + 1;
      visit(index, at, end);
      if (view.getUint8(end) !== COMMA && end !== this.#end) throw new Error(NO_NAMES);
      at = end;
    }
  }
}

/** Some of the names of a list, in its order. Those that stand side by side there are taken over together. */
export class Selection {
  readonly #names: NodeNames;
  readonly #list: ByteWriter;
  #start = 0;
  #end = 0;

  /** @param list is cleared, and they are written into it. */
  constructor(names: NodeNames, list: ByteWriter) {
    this.#names = names;
    this.#list = list;
    list.clear();
  }

  add(start: number, end: number): void {
    if (this.#start === this.#end || start !== this.#end + 1) {
      this.#take();
      this.#start = start;
    }
    this.#end = end;
  }

  get empty(): boolean {
    return this.#end === 0;
  }

  /** What stands between the brackets of a list of them; to be asked for once all are there. */
  get bytes(): Buffer {
    this.#take();
    this.#start = this.#end;
    return this.#list.written;
  }

  #take(): void {
    if (this.#start === this.#end) return;
    if (this.#list.length > 0) this.#list.write(COMMA_ALONE);
    this.#list.write(this.#names.words, this.#start, this.#end);
  }
}
