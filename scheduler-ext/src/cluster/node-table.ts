import { WORD } from '../words.js';
import type { NodeGpus, NodeStates } from './node-gpus.js';

/** The index of no node. */
export const NOBODY = -1;

const QUOTES = 0x22222222;
const [LOWEST, HIGHEST] = [0x01010101, 0x80808080];
/** 0 when there is none in a word; else the lowest bit set is the highest one of the first quotation mark. Those above it may be wrong. */
function quotesIn(word: number): number {
  const differing = word ^ QUOTES;
  return (differing - LOWEST) & ~differing & HIGHEST;
}

/** Of words, 32 bits. */
const HASH_START = 0x811c9dc5;
function hashed(hash: number, word: number): number {
  const product = Math.imul(hash ^ word, 0x9e3779b1);
  return product ^ (product >>> 15);
}

/**
 * Nodes by the bytes of their names, as a request has them: to make thousands of strings and look each one up costs more than to judge all the
 * nodes. Made anew when it is asked after a node came or went.
 */
export class NodeTable {
  readonly #nodes: () => Iterable<NodeGpus>;
  readonly #states: NodeStates;
  #table: Table | undefined;

  /** @param states those of the nodes, by index; no two nodes have the same. */
  constructor(nodes: () => Iterable<NodeGpus>, states: NodeStates) {
    this.#nodes = nodes;
    this.#states = states;
  }

  /** There are others than before. */
  changed(): void {
    this.#table = undefined;
  }

  /** As it is now. */
  get current(): Table {
    this.#table ??= new Table([...this.#nodes()], this.#states.all);
    return this.#table;
  }
}

/**
 * Half empty, so that a search ends soon. All that is read for each of thousands of names lies side by side and is small: what is fetched from
 * far away costs more than all else.
 */
export class Table {
  /** By hash: the index of a node. */
  readonly #indices: Int32Array;
  /** By index: where in `names` its name begins. */
  readonly #starts: Uint32Array;
  /** Each in words; what is left of the last one, or all of it, is 0. */
  readonly #names: Int32Array;
  readonly #nodes: NodeGpus[] = [];
  #end = 0;

  /** @param states by index */
  constructor(
    nodes: readonly NodeGpus[],
    readonly states: Int32Array,
  ) {
    const mask = 2 ** Math.ceil(Math.log2(2 * nodes.length + 2)) - 1;
    this.#indices = new Int32Array(mask + 1).fill(NOBODY);
    this.#starts = new Uint32Array(states.length);
    const names: number[] = [];
    for (const node of nodes) {
      const words = wordsOf(node.quotedName.slice(1, -1));
      let place = words.reduce(hashed, HASH_START) & mask;
      while (this.#indices[place] !== NOBODY) place = (place + 1) & mask;
      this.#indices[place] = node.index;
      this.#starts[node.index] = names.length;
      this.#nodes[node.index] = node;
      names.push(...words);
    }
    this.#names = Int32Array.from(names);
  }

  node(index: number): NodeGpus | undefined {
    return this.#nodes[index];
  }

  /** Where the name ended that was looked for last: its quotation mark. */
  get end(): number {
    return this.#end;
  }

  /**
   * @param start of the name; a quotation mark ends it, and `end` is where that is.
   * @returns the index of the node, or NOBODY
   */
  find(bytes: DataView, start: number): number {
    let hash = HASH_START;
    let at = start;
    let word = bytes.getInt32(at, true);
    let quotes = quotesIn(word);
    for (; quotes === 0; quotes = quotesIn(word)) {
      hash = hashed(hash, word);
      at += WORD;
      word = bytes.getInt32(at, true);
    }
    const rest = (31 - Math.clz32(quotes & -quotes)) >>> 3;
    const last = word & ((1 << (8 * rest)) - 1);
    this.#end = at + rest;
    const mask = this.#indices.length - 1;
    for (let place = hashed(hash, last) & mask; ; place = (place + 1) & mask) {
      const index = this.#indices[place] as number;
      if (index === NOBODY || this.#isNamed(index, bytes, start, at, last)) return index;
    }
  }

  /** The last word of a name alone ends with a 0, so of two names of which one begins with the other some word differs. */
  #isNamed(index: number, bytes: DataView, start: number, lastAt: number, last: number): boolean {
    const names = this.#names;
    let own = this.#starts[index] as number;
    for (let at = start; at < lastAt; at += WORD, own++) if (names[own] !== bytes.getInt32(at, true)) return false;
    return names[own] === last;
  }
}

/** A name's, of which the last has fewer than all its bytes. */
function wordsOf(name: string): number[] {
  const bytes = Buffer.concat([Buffer.from(name), Buffer.alloc(WORD)]);
  return Array.from({ length: Math.floor(bytes.length / WORD) }, (_, index) => bytes.readInt32LE(index * WORD));
}
