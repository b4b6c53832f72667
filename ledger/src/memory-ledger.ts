import { type Content, encode, NOTHING, type Table } from './content.js';
import { LedgerError } from './errors.js';
import type { WriterIdentity } from './ledger.js';
import type { NodeSnapshot } from './records.js';
import { type Reading, StoredLedger } from './stored-ledger.js';

const CLOSED = 'is closed';

interface Entry {
  readonly writer: object;
  readonly identity: WriterIdentity;
  readonly instance: number;
  readonly content: Content;
  readonly at: number;
}

/** What several ledgers of one process share. Nothing of it outlives the process, so there are no leases: a writer's end is its `close()`. */
export class MemoryStore {
  readonly entries = new Map<string, Entry>();
  #instances = 0;

  nextInstance(): number {
    return ++this.#instances;
  }
}

/** The ledger of a single machine. */
export class MemoryLedger extends StoredLedger {
  readonly #store: MemoryStore;
  readonly #instance: number;

  constructor({ writer, store = new MemoryStore() }: { readonly writer?: WriterIdentity; readonly store?: MemoryStore } = {}) {
    super(writer);
    this.#store = store;
    this.#instance = store.nextInstance();
    this.#enterConnected();
  }

  protected override write(snapshot: NodeSnapshot): void {
    const identity = this.identity as WriterIdentity;
    const refusal = this.#refusal(identity, snapshot);
    if (refusal) {
      this.enter({ state: 'refused', sentence: refusal.message, error: refusal });
      return;
    }
    const entry = { writer: this, identity, instance: this.#instance, content: encode(snapshot), at: Date.now() };
    this.#store.entries.set(identity.node, entry);
    this.#enterConnected();
  }

  protected override async read(tables: readonly Table[], node: string | undefined): Promise<Reading[]> {
    const entries = [...this.#store.entries].filter(([name]) => node === undefined || name === node);
    const now = Date.now();
    return entries.map(([name, { content, at }]) => ({ node: name, age: now - at, content: only(tables, content) }));
  }

  protected override async end(): Promise<void> {
    const node = this.identity?.node;
    if (node !== undefined && this.#store.entries.get(node)?.writer === this) this.#store.entries.delete(node);
  }

  protected override placeOf(node: string): Record<'key' | 'address', string> {
    return { key: node, address: 'this process' };
  }

  #enterConnected(): void {
    this.enter({ state: 'connected', sentence: 'The ledger is kept in this process.' });
  }

  #refusal({ node, owner, claimGpus = true }: WriterIdentity, { gpus }: NodeSnapshot): LedgerError | undefined {
    const mine = this.#store.entries.get(node);
    if (mine && mine.identity.owner !== owner) return new LedgerError('NODE_TAKEN', { node, end: CLOSED });
    if (mine && mine.instance > this.#instance) return new LedgerError('NODE_SUPERSEDED', { node });
    if (!claimGpus) return undefined;
    for (const [other, entry] of this.#store.entries) {
      const taken = other !== node && entry.identity.claimGpus !== false && gpus.find(({ uuid }) => entry.content.gpus.has(uuid));
      if (taken) return new LedgerError('GPU_TAKEN', { node, other, gpu: taken.uuid, end: CLOSED });
    }
    return undefined;
  }
}

function only(tables: readonly Table[], content: Content): Content {
  return { ...NOTHING, ...Object.fromEntries(tables.map((table) => [table, content[table]])) };
}
