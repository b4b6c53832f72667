import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { Connection } from './connection.js';
import { LedgerError } from './errors.js';
import { type Keys, keysIn, NodeEntry, type WriterIdentity } from './node-entry.js';
import { checkNodeName } from './node-name.js';
import type { NodeSnapshot } from './records.js';
import { type RedisOptions, type RedisTarget, redisTarget } from './redis-options.js';
import { problemOfSnapshot } from './snapshot-check.js';
import { within } from './within.js';
import { WriterLoop } from './writer-loop.js';

interface RedisLedgerOptions {
  readonly redis: RedisOptions;
  /** Undefined: the ledger only reads. */
  readonly writer?: WriterIdentity;
  /** Milliseconds for which a node stays in the ledger after its last heartbeat. @default 15000 */
  readonly ttl?: number;
}

/** `refused`: Redis answers, but another gpu-proxy keeps the node or one of its GPUs there. */
type LedgerState =
  | { readonly state: 'connected'; readonly sentence: string }
  | { readonly state: 'away' | 'refused'; readonly sentence: string; readonly error: LedgerError };

/** Each state is emitted once, when it starts. */
interface LedgerEvents {
  state: [state: LedgerState['state'], sentence: string, error: LedgerError | undefined];
  /** An entry that cannot be read, once until it changes. */
  broken: [error: LedgerError];
}

/** A snapshot and the milliseconds since the last heartbeat of its node. */
export type ReportedSnapshot = NodeSnapshot & { readonly age: number };

const DEFAULT_TTL = 15_000;
const HEARTBEAT = 1000;
/** Milliseconds. More than the TTL of any entry. */
const MOST_AGE = 24 * 3_600_000;
/** Milliseconds for `close()` to write the last publication. */
const CLOSE_TIMEOUT = 1000;

/**
 * An index of nodes with their inventory, allocations and sessions. It holds the last snapshot of
 * each living node; the source of truth is the node's directories and workers. It connects to
 * Redis on first use.
 */
export class RedisLedger extends EventEmitter<LedgerEvents> {
  readonly #target: RedisTarget;
  readonly #keys: Keys;
  readonly #connection: Connection;
  readonly #node: string | undefined;
  readonly #loop: WriterLoop<NodeSnapshot> | undefined;
  #state: LedgerState | undefined;
  /** By node, at the latest read. */
  #broken: ReadonlyMap<string, LedgerError> = new Map();
  #closed = false;

  /** @throws LedgerError REDIS_OPTION, REDIS_FILE, NODE_NAME */
  constructor({ redis, writer, ttl = DEFAULT_TTL }: RedisLedgerOptions) {
    super();
    if (writer) checkNodeName(writer.node);
    this.#node = writer?.node;
    this.#target = redisTarget(redis);
    this.#keys = keysIn(this.#target.prefix);
    this.#connection = new Connection(this.#target);
    if (!writer) return;
    const entry = new NodeEntry(writer, this.#keys, ttl);
    this.#loop = new WriterLoop((snapshot) => this.#put(entry, snapshot), {
      renewal: Math.min(HEARTBEAT, ttl / 5),
    });
  }

  /** Undefined before the first read or write. */
  get state(): LedgerState | undefined {
    return this.#state;
  }

  /**
   * Publishes the state of this node. Returns at once and writes in the background. A later
   * publication replaces a pending one.
   *
   * @throws LedgerError only for wrong use: no writer, another node, closed
   */
  publish(snapshot: NodeSnapshot): void {
    if (this.#closed) throw new LedgerError('LEDGER_CLOSED');
    if (!this.#loop || this.#node === undefined) throw new LedgerError('LEDGER_READER');
    if (snapshot.node !== this.#node)
      throw new LedgerError('NODE_OTHER', { node: this.#node, other: snapshot.node });
    this.#loop.want(snapshot);
  }

  /**
   * The last publications of all living nodes, sorted by node name.
   *
   * @throws LedgerError if Redis cannot be read
   */
  async snapshots(): Promise<ReportedSnapshot[]> {
    if (this.#closed) throw new LedgerError('LEDGER_CLOSED');
    try {
      const found = await this.#connection.use((client) => this.#read(client));
      if (!this.#loop?.started) this.#enterConnected();
      return found;
    } catch (error) {
      if (!this.#loop?.started) this.#enterAway(error as LedgerError);
      throw error;
    }
  }

  /**
   * Stops writing and reading. Never fails. The node's entry stays until its TTL ends, so that a
   * restart of gpu-proxy leaves no gap.
   */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const stopped = this.#loop?.stop() ?? Promise.resolve();
    await within(CLOSE_TIMEOUT, stopped).catch(() => undefined);
    this.#connection.close();
    await stopped;
  }

  async #put(entry: NodeEntry, snapshot: NodeSnapshot): Promise<void> {
    try {
      const refusal = await this.#connection.use((client) => entry.put(client, snapshot));
      if (refusal) this.#enter({ state: 'refused', sentence: refusal.message, error: refusal });
      else this.#enterConnected();
    } catch (error) {
      this.#enterAway(error as LedgerError);
      throw error;
    }
  }

  async #read(client: Redis): Promise<ReportedSnapshot[]> {
    const names = await client.zrange(this.#keys.nodes, 0, -1);
    const broken = new Map<string, LedgerError>();
    const found = await Promise.all(
      names.sort().map(async (name) => {
        const one = await this.#readNode(client, name);
        if (one instanceof LedgerError) broken.set(name, one);
        return one instanceof LedgerError ? undefined : one;
      }),
    );
    this.#tellBroken(broken);
    return found.filter((one) => one !== undefined);
  }

  /**
   * Reads snapshot and age in one transaction. Undefined: the entry has expired. A broken entry is
   * returned, not thrown, so that it does not hide other nodes.
   */
  async #readNode(
    client: Redis,
    node: string,
  ): Promise<ReportedSnapshot | LedgerError | undefined> {
    const key = this.#keys.node(node);
    const answers = await client.multi().pttl(key).hmget(key, 'ttl', 'snapshot').exec();
    const broken = (reason: string) =>
      new LedgerError('LEDGER_CONTENT', { key, address: this.#target.address, reason });
    const [[, left] = [], [error, fields] = []] = answers ?? [];
    if (error) return broken(error.message);
    const [ttl, text] = fields as [string | null, string | null];
    if (ttl === null || text === null) return undefined;
    const age = Math.max(0, Number(ttl) - Number(left));
    if (!(age <= MOST_AGE)) return broken('its ttl is not a number of milliseconds');
    const snapshot = parse(text);
    const reason = problemOfSnapshot(snapshot, node);
    return reason === undefined ? { ...(snapshot as NodeSnapshot), age } : broken(reason);
  }

  #tellBroken(broken: ReadonlyMap<string, LedgerError>): void {
    const former = this.#broken;
    this.#broken = broken;
    for (const [node, error] of broken)
      if (former.get(node)?.message !== error.message)
        process.nextTick(() => this.emit('broken', error));
  }

  #enterConnected(): void {
    this.#enter({
      state: 'connected',
      sentence: `Redis at ${this.#target.address} is connected and holds the ledger.`,
    });
  }

  #enterAway(error: LedgerError): void {
    this.#enter({ state: 'away', sentence: error.message, error });
  }

  #enter(next: LedgerState): void {
    const before = this.#state;
    this.#state = next;
    if (before && keyOf(before) === keyOf(next)) return;
    const error = next.state === 'connected' ? undefined : next.error;
    // Deferred, so that an exception of a listener is not taken for a failure of Redis.
    process.nextTick(() => this.emit('state', next.state, next.sentence, error));
  }
}

/**
 * States with the same key count as one. For failures the key is the code, because the sentence
 * may vary between attempts. A refusal's sentence names the refusing node, so it is part of the
 * key.
 */
function keyOf(state: LedgerState): string {
  if (state.state === 'away') return state.error.code;
  return state.state === 'refused' ? state.sentence : state.state;
}

/** Undefined if it is no JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
