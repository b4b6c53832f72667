import type { EventEmitter } from 'node:events';
import type { LedgerError } from './errors.js';
import type { AllocationSpecification, GpuRecord, NodeSnapshot, SessionRecord, SessionUse, TimeUse } from './records.js';

/** What holds of everything that is read: which node said it, and how many milliseconds ago that node was last heard of. */
export interface Told {
  readonly node: string;
  readonly age: number;
}

export interface NodeView extends Told {
  readonly gpus: readonly GpuRecord[];
}

export interface AllocationView extends Told {
  readonly specification: AllocationSpecification;
  readonly time: TimeUse;
}

export interface SessionView extends Told {
  readonly record: SessionRecord;
  readonly use: SessionUse;
}

export interface ReadOptions {
  /**
   * When the store is away: answer what this ledger read last, if it is no older than this, in milliseconds. `age` says how old it is.
   * @default 0: nothing that is not current; the read fails
   */
  readonly maximumAge?: number;
}

/** Whose truth a ledger writes. */
export interface WriterIdentity {
  readonly node: string;
  /** Stays when this node's proxy starts again, and differs from machine to machine: see `ownerOf()`. */
  readonly owner: string;
  /**
   * False where UUIDs do not tell GPUs of different machines apart, as the simulator's.
   * @default true: no two nodes may keep the same GPU
   */
  readonly claimGpus?: boolean;
}

/** `refused`: the store answers, and another keeps the node or one of its GPUs there. NODE_SUPERSEDED has no end. */
export type LedgerState =
  | { readonly state: 'connected'; readonly sentence: string }
  | { readonly state: 'away' | 'refused'; readonly sentence: string; readonly error: LedgerError };

/** Each state is said once, when it begins. */
export interface LedgerEvents {
  state: [state: LedgerState['state'], sentence: string, error: LedgerError | undefined];
}

/**
 * An index over nodes: their inventory, allocations and sessions. The truth is each node's directories and workers; the ledger says what
 * the nodes last said, and only of nodes that live.
 */
export interface Ledger extends EventEmitter<LedgerEvents> {
  /** Undefined until the store was first asked or written to. */
  readonly state: LedgerState | undefined;

  /**
   * The whole truth of this node, now. Returns at once; the store is brought to it in the background, and later publications replace
   * earlier ones that were not yet written. Throws a LedgerError only for what is wrong in the program: no writer, another node, closed.
   */
  publish(snapshot: NodeSnapshot): void;

  /** The nodes that live. Fails, as all reading does, with a LedgerError when the store is away. */
  nodes(options?: ReadOptions): Promise<NodeView[]>;
  /** All that one node holds, of one moment; undefined when no such node lives. */
  node(name: string, options?: ReadOptions): Promise<(NodeSnapshot & Told) | undefined>;
  /** The same of all nodes that live. */
  snapshots(options?: ReadOptions): Promise<(NodeSnapshot & Told)[]>;
  allocations(options?: ReadOptions & { readonly node?: string }): Promise<AllocationView[]>;
  sessions(options?: ReadOptions & { readonly node?: string; readonly allocation?: string }): Promise<SessionView[]>;

  /**
   * Ends writing and reading. What was written stays until its lease ends, so that a proxy that starts again goes on seamlessly;
   * `withdraw` takes it out at once, if the store can be reached. Never fails.
   */
  close(options?: { readonly withdraw?: boolean }): Promise<void>;
}
