import { EventEmitter } from 'node:events';
import { type Content, decode, decodeAllocations, decodeGpus, decodeSessions, TABLES, type Table } from './content.js';
import { LedgerError } from './errors.js';
import type {
  AllocationView,
  Ledger,
  LedgerEvents,
  LedgerState,
  NodeView,
  ReadOptions,
  SessionView,
  Told,
  WriterIdentity,
} from './ledger.js';
import { checkNodeName } from './node-name.js';
import type { NodeSnapshot } from './records.js';

/** The tables that were asked for, of one node, as they were together at one moment. */
export interface Reading extends Told {
  readonly content: Content;
}

/** What the stores have in common: they keep tables of rows, and this makes records of them. */
export abstract class StoredLedger extends EventEmitter<LedgerEvents> implements Ledger {
  protected readonly identity: WriterIdentity | undefined;
  #state: LedgerState | undefined;
  #closed = false;

  constructor(identity: WriterIdentity | undefined) {
    super();
    if (identity) checkNodeName(identity.node);
    this.identity = identity;
  }

  /** The living nodes, or the one that is named if it lives; tables that were not asked for are empty. */
  protected abstract read(tables: readonly Table[], node: string | undefined, maximumAge: number): Promise<Reading[]>;
  /** Never throws and never waits. */
  protected abstract write(snapshot: NodeSnapshot): void;
  /** Called once. */
  protected abstract end(withdraw: boolean): Promise<void>;
  /** Names the place of a table in a sentence. */
  protected abstract placeOf(node: string): Record<'key' | 'address', string>;

  get state(): LedgerState | undefined {
    return this.#state;
  }

  publish(snapshot: NodeSnapshot): void {
    if (this.#closed) throw new LedgerError('LEDGER_CLOSED');
    if (!this.identity) throw new LedgerError('LEDGER_READER');
    const { node } = this.identity;
    if (snapshot.node !== node) throw new LedgerError('NODE_OTHER', { node, other: snapshot.node });
    this.write(snapshot);
  }

  async nodes({ maximumAge = 0 }: ReadOptions = {}): Promise<NodeView[]> {
    const readings = await this.#read(['gpus'], undefined, maximumAge);
    return readings.map((one) => ({ ...told(one), gpus: this.#decoded(one, decodeGpus) }));
  }

  async node(name: string, { maximumAge = 0 }: ReadOptions = {}): Promise<(NodeSnapshot & Told) | undefined> {
    const [reading] = await this.#read(TABLES, name, maximumAge);
    return reading && this.#whole(reading);
  }

  async snapshots({ maximumAge = 0 }: ReadOptions = {}): Promise<(NodeSnapshot & Told)[]> {
    return (await this.#read(TABLES, undefined, maximumAge)).map((one) => this.#whole(one));
  }

  async allocations({ maximumAge = 0, node }: ReadOptions & { readonly node?: string } = {}): Promise<AllocationView[]> {
    const readings = await this.#read(['allocations', 'time'], node, maximumAge);
    return readings.flatMap((one) => this.#decoded(one, decodeAllocations).map((allocation) => ({ ...told(one), ...allocation })));
  }

  async sessions(options: ReadOptions & { readonly node?: string; readonly allocation?: string } = {}): Promise<SessionView[]> {
    const readings = await this.#read(['sessions', 'use'], options.node, options.maximumAge ?? 0);
    const views = readings.flatMap((one) => this.#decoded(one, decodeSessions).map((session) => ({ ...told(one), ...session })));
    return options.allocation === undefined ? views : views.filter((view) => view.record.allocation === options.allocation);
  }

  async close({ withdraw = false }: { readonly withdraw?: boolean } = {}): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.end(withdraw);
  }

  /** Says a state when it begins; the same trouble again is not news. */
  protected enter(next: LedgerState): void {
    const before = this.#state;
    this.#state = next;
    if (before && newsOf(before) === newsOf(next)) return;
    const error = next.state === 'connected' ? undefined : next.error;
    // Not from within the work: what goes wrong in a listener is its own defect, and no trouble with the store.
    process.nextTick(() => this.emit('state', next.state, next.sentence, error));
  }

  async #read(tables: readonly Table[], node: string | undefined, maximumAge: number): Promise<Reading[]> {
    if (this.#closed) throw new LedgerError('LEDGER_CLOSED');
    if (node !== undefined) checkNodeName(node);
    return this.read(tables, node, maximumAge);
  }

  #whole(reading: Reading): NodeSnapshot & Told {
    return { ...this.#decoded(reading, (content) => decode(reading.node, content)), ...told(reading) };
  }

  #decoded<T>(reading: Reading, decoder: (content: Content) => T): T {
    try {
      return decoder(reading.content);
    } catch (error) {
      throw new LedgerError('LEDGER_CONTENT', { ...this.placeOf(reading.node), reason: (error as Error).message });
    }
  }
}

/** What makes a state another one. A store that is away may be so in other words each time; whoever refuses a node is named in the sentence. */
function newsOf(state: LedgerState): string {
  if (state.state === 'away') return state.error.code;
  return state.state === 'refused' ? state.sentence : state.state;
}

function told({ node, age }: Told): Told {
  return { node, age };
}
