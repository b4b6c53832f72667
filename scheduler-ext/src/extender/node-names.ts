import type { NodeGpus } from '../cluster/node-gpus.js';
import type { NodeTable } from '../cluster/node-table.js';

const [QUOTE, COMMA, BACKSLASH, END] = [0x22, 0x2c, 0x5c, 0x5d];
const COMMA_ALONE = Buffer.from(',');

/** A list of names of nodes, as JSON has it. */
export class NodeNames {
  readonly bytes: Buffer;
  readonly #start: number;
  readonly #end: number;

  private constructor(bytes: Buffer, start: number, end: number) {
    this.bytes = bytes;
    this.#start = start;
    this.#end = end;
  }

  /** @throws Error for what is the name of no node */
  static of(names: readonly string[]): NodeNames {
    const bytes = Buffer.from(JSON.stringify(names));
    const end = endOfList(bytes, 1);
    if (end === undefined) throw new Error('its NodeNames are no names of nodes');
    return new NodeNames(bytes, 1, end);
  }

  /**
   * @param start behind the bracket that opens it
   * @returns also where the bracket is that closes it; undefined where it is not written as kube-scheduler writes it, without any space
   */
  static at(bytes: Buffer, start: number): { readonly names: NodeNames; readonly end: number } | undefined {
    const end = endOfList(bytes, start);
    return end === undefined ? undefined : { names: new NodeNames(bytes, start, end), end };
  }

  /** @param list what stands between the brackets of another one */
  equals(list: Uint8Array): boolean {
    return this.bytes.subarray(this.#start, this.#end).equals(list);
  }

  /** @param visit gets each node, if it is known, and where its name begins and ends as JSON has it, quotation marks and all */
  visit(table: NodeTable, visit: (node: NodeGpus | undefined, start: number, end: number) => void): void {
    const { bytes } = this;
    const known = table.current;
    let at = this.#start;
    while (bytes[at] === QUOTE) {
      const node = known.find(bytes, at + 1);
      const end = known.end + 1;
      visit(node, at, end);
      at = bytes[end] === COMMA ? end + 1 : end;
    }
  }
}

/** Some of the names of a list, in its order. Those that stand side by side there are taken over together. */
export class Selection {
  readonly #names: NodeNames;
  readonly #runs: [start: number, end: number][] = [];
  #bytes: Buffer | undefined;

  constructor(names: NodeNames) {
    this.#names = names;
  }

  add(start: number, end: number): void {
    const last = this.#runs.at(-1);
    if (last?.[1] === start - 1) last[1] = end;
    else this.#runs.push([start, end]);
  }

  get empty(): boolean {
    return this.#runs.length === 0;
  }

  /** What stands between the brackets of a list of them; to be asked for once all are there. */
  get bytes(): Buffer {
    this.#bytes ??= Buffer.concat(
      this.#runs.flatMap(([start, end], index) => [...(index > 0 ? [COMMA_ALONE] : []), this.#names.bytes.subarray(start, end)]),
    );
    return this.#bytes;
  }
}

/** Where its bracket is; undefined where it is no list of strings without spaces and escapes. */
function endOfList(bytes: Buffer, start: number): number | undefined {
  if (bytes[start] === END) return start;
  for (let at = start; bytes[at] === QUOTE; at++) {
    for (at++; bytes[at] !== QUOTE; at++) if (at >= bytes.length || bytes[at] === BACKSLASH) return undefined;
    at++;
    if (bytes[at] === END) return at;
    if (bytes[at] !== COMMA) return undefined;
  }
  return undefined;
}
