import { TABLES, type Table } from './content.js';

/** In braces, so that a cluster keeps together what one script touches; no node can have this name. */
const REGISTRY = '{@registry}';

/** Where everything lies in Redis; README.md has the table. */
export class Keyspace {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Sorted set: each node's name, by the time when its lease ends. */
  get nodes(): string {
    return `${this.#prefix}${REGISTRY}:nodes`;
  }

  /** String: who keeps this GPU. */
  gpu(uuid: string): string {
    return `${this.#prefix}${REGISTRY}:gpu:${uuid}`;
  }

  /** String: the number of the newest writer. */
  instance(node: string): string {
    return `${this.#prefix}{${node}}:instance`;
  }

  /** Hash: who writes, and what was written; with it the node lives. */
  lease(node: string): string {
    return `${this.#prefix}{${node}}:lease`;
  }

  table(node: string, table: Table): string {
    return `${this.#prefix}{${node}}:${table}`;
  }

  /** The lease and then the tables, as the scripts expect them. */
  ofNode(node: string): string[] {
    return [this.lease(node), ...TABLES.map((table) => this.table(node, table))];
  }
}
