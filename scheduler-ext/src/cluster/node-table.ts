import type { NodeGpus } from './node-gpus.js';

const QUOTE = 0x22;
const NONE = -1;

/** FNV-1a, 32 bits: of few instructions, and for names that differ in their last digits. */
const HASH_START = 0x811c9dc5;
const hashed = (hash: number, byte: number): number => Math.imul(hash ^ byte, 0x01000193);

/**
 * Nodes by the bytes of their names, as a request has them: to make thousands of strings and look each one up costs more than to judge all the
 * nodes. Made anew when it is asked after a node came or went.
 */
export class NodeTable {
  readonly #nodes: () => Iterable<NodeGpus>;
  #table: Table | undefined;

  constructor(nodes: () => Iterable<NodeGpus>) {
    this.#nodes = nodes;
  }

  /** There are others than before. */
  changed(): void {
    this.#table = undefined;
  }

  /** As it is now. */
  get current(): Table {
    this.#table ??= new Table([...this.#nodes()]);
    return this.#table;
  }
}

/**
 * Half empty, so that a search ends soon. The names lie side by side, since each that lies elsewhere would be fetched from far away. And since
 * schedulers ask for much the same names in much the same order, each node knows which one followed it last time: there it is tried first.
 */
export class Table {
  readonly #nodes: readonly NodeGpus[];
  /** By hash: where in `nodes`. */
  readonly #places: Int32Array;
  /** By place in `nodes`, as all below: where in `names` its name begins. */
  readonly #starts: Uint32Array;
  /** The place of the one that followed it. */
  readonly #followers: Int32Array;
  /** Each with the quotation mark that ends it. */
  readonly #names: Buffer;
  #last = 0;
  #end = 0;

  constructor(nodes: readonly NodeGpus[]) {
    const size = 2 ** Math.ceil(Math.log2(2 * nodes.length + 2));
    this.#nodes = nodes;
    this.#places = new Int32Array(size).fill(NONE);
    this.#starts = new Uint32Array(nodes.length);
    this.#followers = new Int32Array(nodes.length + 1).fill(NONE);
    this.#names = Buffer.from(nodes.map(({ quotedName }) => quotedName.slice(1)).join(''));
    let start = 0;
    for (const place of nodes.keys()) {
      const end = this.#names.indexOf(QUOTE, start);
      let hash = this.#names.subarray(start, end).reduce(hashed, HASH_START) & (size - 1);
      while (this.#places[hash] !== NONE) hash = (hash + 1) & (size - 1);
      this.#places[hash] = place;
      this.#starts[place] = start;
      start = end + 1;
    }
  }

  /** Where the name ended that was looked for last: its quotation mark. */
  get end(): number {
    return this.#end;
  }

  /** @param start of the name; a quotation mark ends it. */
  find(bytes: Uint8Array, start: number): NodeGpus | undefined {
    const expected = this.#followers[this.#last] as number;
    const place = expected !== NONE && this.#isNamed(expected, bytes, start) ? expected : this.#search(bytes, start);
    if (place === NONE) return undefined;
    this.#followers[this.#last] = place;
    this.#last = place;
    return this.#nodes[place];
  }

  #search(bytes: Uint8Array, start: number): number {
    let hash = HASH_START;
    let end = start;
    for (; bytes[end] !== QUOTE; end++) hash = hashed(hash, bytes[end] as number);
    const mask = this.#places.length - 1;
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const place = this.#places[at] as number;
      if (place !== NONE && !this.#isNamed(place, bytes, start)) continue;
      this.#end = end;
      return place;
    }
  }

  #isNamed(place: number, bytes: Uint8Array, start: number): boolean {
    const names = this.#names;
    let [own, other] = [this.#starts[place] as number, start];
    for (; names[own] === bytes[other]; own++, other++) {
      if (names[own] !== QUOTE) continue;
      this.#end = other;
      return true;
    }
    return false;
  }
}
