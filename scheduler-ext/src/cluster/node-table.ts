import type { NodeGpus } from './node-gpus.js';

/** FNV-1a, 32 bits: of few instructions, and for names that differ in their last digits. */
export const HASH_START = 0x811c9dc5;
export const hashed = (hash: number, byte: number): number => Math.imul(hash ^ byte, 0x01000193);

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

  /** @param start of the name; a quotation mark ends it. @param hash of its bytes, one after the other */
  find(bytes: Uint8Array, start: number, hash: number): NodeGpus | undefined {
    this.#table ??= new Table([...this.#nodes()]);
    return this.#table.find(bytes, start, hash);
  }
}

/** Half empty, so that a search ends soon. The names lie side by side, since each that lies elsewhere would be fetched from far away. */
class Table {
  readonly #nodes: (NodeGpus | undefined)[];
  /** Where in `names` the name of the node at the same place begins. */
  readonly #starts: Uint32Array;
  /** Each with the quotation mark that ends it. */
  readonly #names: Buffer;

  constructor(nodes: readonly NodeGpus[]) {
    const size = 2 ** Math.ceil(Math.log2(2 * nodes.length + 2));
    this.#nodes = new Array<NodeGpus | undefined>(size).fill(undefined);
    this.#starts = new Uint32Array(size);
    this.#names = Buffer.from(nodes.map(({ quotedName }) => quotedName.slice(1)).join(''));
    let start = 0;
    for (const node of nodes) {
      const end = this.#names.indexOf('"', start);
      let place = this.#names.subarray(start, end).reduce(hashed, HASH_START) & (size - 1);
      while (this.#nodes[place] !== undefined) place = (place + 1) & (size - 1);
      this.#nodes[place] = node;
      this.#starts[place] = start;
      start = end + 1;
    }
  }

  find(bytes: Uint8Array, start: number, hash: number): NodeGpus | undefined {
    const mask = this.#nodes.length - 1;
    for (let place = hash & mask; ; place = (place + 1) & mask) {
      const node = this.#nodes[place];
      if (node === undefined || isSameName(this.#names, this.#starts[place] as number, bytes, start)) return node;
    }
  }
}

const QUOTE = 0x22;

function isSameName(one: Uint8Array, oneStart: number, other: Uint8Array, otherStart: number): boolean {
  for (let index = 0; one[oneStart + index] === other[otherStart + index]; index++) if (one[oneStart + index] === QUOTE) return true;
  return false;
}
