import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { Connection } from './connection.js';
import { LedgerError } from './errors.js';
import { type Keys, keysIn, NodeEntry, type WriterIdentity } from './node-entry.js';
import { checkNodeName } from './node-name.js';
import type { NodeSnapshot } from './records.js';
import { type RedisOptions, type RedisTarget, redisTarget } from './redis-options.js';
import { within } from './within.js';
import { WriterLoop } from './writer-loop.js';

export interface RedisLedgerOptions {
  readonly redis: RedisOptions;
  /** Without it the ledger only reads. */
  readonly writer?: WriterIdentity;
  /** Milliseconds that a node stays in the ledger after its last heartbeat. @default 15000 */
  readonly ttl?: number;
}

/** `refused`: Redis answers, but another gpu-proxy keeps the node or one of its GPUs there. */
export type LedgerState =
  | { readonly state: 'connected'; readonly sentence: string }
  | { readonly state: 'away' | 'refused'; readonly sentence: string; readonly error: LedgerError };

/** A state is emitted once, when it begins. */
export interface LedgerEvents {
  state: [state: LedgerState['state'], sentence: string, error: LedgerError | undefined];
}

/** A snapshot, with the milliseconds since the last heartbeat of its node. */
export type ReportedSnapshot = NodeSnapshot & { readonly age: number };

const DEFAULT_TTL = 15_000;
const HEARTBEAT = 1000;
/** How long `close()` may take to write the last publication. */
const GRACE = 1000;

/**
 * An index over nodes: their inventory, allocations and sessions. The truth is each node's
 * directories and workers; the ledger has what living nodes published last. It connects to Redis
 * when it is first used.
 */
export class RedisLedger extends EventEmitter<LedgerEvents> {
  readonly #target: RedisTarget;
  readonly #keys: Keys;
  readonly #connection: Connection;
  readonly #node: string | undefined;
  readonly #loop: WriterLoop<NodeSnapshot> | undefined;
  #state: LedgerState | undefined;
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

  /** Undefined until Redis was first read or written. */
  get state(): LedgerState | undefined {
    return this.#state;
  }

  /**
   * Publishes all that holds on this node. Returns at once; Redis is written in the background, and
   * a later publication replaces an earlier one that was not written yet.
   *
   * @throws LedgerError only for defects of the program: no writer, another node, closed
   */
  publish(snapshot: NodeSnapshot): void {
    if (this.#closed) throw new LedgerError('LEDGER_CLOSED');
    if (!this.#loop || this.#node === undefined) throw new LedgerError('LEDGER_READER');
    if (snapshot.node !== this.#node)
      throw new LedgerError('NODE_OTHER', { node: this.#node, other: snapshot.node });
    this.#loop.want(snapshot);
  }

  /**
   * What each living node published last, by name of the node.
   *
   * @throws LedgerError that says why Redis cannot be read
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
   * Ends writing and reading; never fails. The node's entry stays until its TTL ends, so that a
   * gpu-proxy that restarts does not go missing.
   */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const stopped = this.#loop?.stop() ?? Promise.resolve();
    await within(GRACE, stopped).catch(() => undefined);
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
    const found = await Promise.all(names.sort().map((name) => this.#readNode(client, name)));
    return found.filter((one) => one !== undefined);
  }

  /** In one transaction, so that the age is that of the snapshot; undefined if it has expired. */
  async #readNode(client: Redis, node: string): Promise<ReportedSnapshot | undefined> {
    const key = this.#keys.node(node);
    const answers = await client.multi().pttl(key).hmget(key, 'ttl', 'snapshot').exec();
    const [left, [ttl, snapshot]] = (answers ?? []).map(([error, answer]) => {
      if (error) throw error;
      return answer;
    }) as [number, [string | null, string | null]];
    if (ttl === null || snapshot === null) return undefined;
    return { ...this.#parse(key, snapshot), age: Math.max(0, Number(ttl) - left) };
  }

  #parse(key: string, snapshot: string): NodeSnapshot {
    try {
      return JSON.parse(snapshot) as NodeSnapshot;
    } catch (error) {
      const { address } = this.#target;
      throw new LedgerError('LEDGER_CONTENT', { key, address, reason: (error as Error).message });
    }
  }

  #enterConnected(): void {
    this.#enter({
      state: 'connected',
      sentence: `Redis at ${this.#target.address} answers: the ledger is kept there.`,
    });
  }

  #enterAway(error: LedgerError): void {
    this.#enter({ state: 'away', sentence: error.message, error });
  }

  #enter(next: LedgerState): void {
    const before = this.#state;
    this.#state = next;
    if (before && newsOf(before) === newsOf(next)) return;
    const error = next.state === 'connected' ? undefined : next.error;
    // Deferred, so that an exception of a listener does not pass for a failure of Redis.
    process.nextTick(() => this.emit('state', next.state, next.sentence, error));
  }
}

/**
 * States with the same news are one state. The wording of a failure may vary between attempts; a
 * refusal names in its sentence who refuses.
 */
function newsOf(state: LedgerState): string {
  if (state.state === 'away') return state.error.code;
  return state.state === 'refused' ? state.sentence : state.state;
}
