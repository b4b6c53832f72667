import type { Redis } from 'ioredis';
import { Connection } from './connection.js';
import { type Content, NOTHING, type Rows, TABLES, type Table } from './content.js';
import type { LedgerError } from './errors.js';
import { Keyspace } from './keyspace.js';
import type { WriterIdentity } from './ledger.js';
import { NodeWriter } from './node-writer.js';
import type { NodeSnapshot } from './records.js';
import { type RedisOptions, type RedisTarget, redisTarget } from './redis-options.js';
import { type Reading, StoredLedger } from './stored-ledger.js';
import { within } from './within.js';
import { WriterLoop } from './writer-loop.js';

export interface RedisLedgerOptions {
  readonly redis: RedisOptions;
  /** Without it the ledger is for reading. */
  readonly writer?: WriterIdentity;
  /** Milliseconds that a node stays in the ledger after it was last heard of. @default 15000 */
  readonly lease?: number;
}

const DEFAULT_LEASE = 15_000;
const RENEWAL = 1000;
/** How long `close()` tries to leave things in order. */
const GRACE = 1000;

/** The ledger of many machines. It connects when it is first used. */
export class RedisLedger extends StoredLedger {
  readonly #target: RedisTarget;
  readonly #keys: Keyspace;
  readonly #connection: Connection;
  readonly #writer: NodeWriter | undefined;
  readonly #loop: WriterLoop<NodeSnapshot>;
  /** What was read last, of those questions that may be answered from it. */
  readonly #remembered = new Map<string, { readonly readings: Reading[]; readonly at: number }>();

  constructor({ redis, writer, lease = DEFAULT_LEASE }: RedisLedgerOptions) {
    super(writer);
    this.#target = redisTarget(redis);
    this.#keys = new Keyspace(this.#target.prefix);
    this.#connection = new Connection(this.#target);
    this.#writer = writer && new NodeWriter(writer, this.#keys, lease);
    this.#loop = new WriterLoop((wanted) => this.#bring(wanted), { renewal: Math.min(RENEWAL, lease / 5) });
  }

  protected override write(snapshot: NodeSnapshot): void {
    this.#loop.want(snapshot);
  }

  protected override async read(tables: readonly Table[], node: string | undefined, maximumAge: number): Promise<Reading[]> {
    const question = [...tables, node].join(' ');
    try {
      const readings = await this.#connection.use((client) => this.#readNow(client, tables, node));
      if (maximumAge > 0) this.#remembered.set(question, { readings, at: Date.now() });
      if (!this.#loop.started) this.#enterConnected();
      return readings;
    } catch (error) {
      if (!this.#loop.started) this.#enterAway(error as LedgerError);
      const remembered = this.#remembered.get(question);
      const since = remembered ? Date.now() - remembered.at : Number.POSITIVE_INFINITY;
      if (!remembered || since > maximumAge) throw error;
      return remembered.readings.map((one) => ({ ...one, age: one.age + since }));
    }
  }

  protected override async end(withdraw: boolean): Promise<void> {
    const ended = this.#finish(withdraw);
    try {
      await within(GRACE, ended);
    } catch {
      // What could not be written or taken out is of no use any more when the lease ends.
    }
    this.#connection.close();
    await ended.catch(() => undefined);
  }

  protected override placeOf(node: string): Record<'key' | 'address', string> {
    return { key: `${this.#keys.lease(node).replace(/lease$/, '*')}`, address: this.#target.address };
  }

  async #finish(withdraw: boolean): Promise<void> {
    await this.#loop.stop();
    if (withdraw) await this.#connection.use(async (client) => this.#writer?.withdraw(client, this.#loop.wanted));
  }

  async #bring(wanted: NodeSnapshot): Promise<'again' | 'never again'> {
    const writer = this.#writer as NodeWriter;
    try {
      const refusal = await this.#connection.use((client) => writer.bring(client, wanted));
      if (refusal) this.enter({ state: 'refused', sentence: refusal.message, error: refusal });
      else this.#enterConnected();
      return refusal?.code === 'NODE_SUPERSEDED' ? 'never again' : 'again';
    } catch (error) {
      this.#enterAway(error as LedgerError);
      throw error;
    }
  }

  async #readNow(client: Redis, tables: readonly Table[], node: string | undefined): Promise<Reading[]> {
    const names = node === undefined ? await client.zrange(this.#keys.nodes, 0, -1) : [node];
    const readings = await Promise.all(names.map((name) => this.#readNode(client, tables, name)));
    return readings.filter((one) => one !== undefined);
  }

  /** In one transaction: what one node said at one moment. Undefined for a node whose lease has ended, or of which something is missing. */
  async #readNode(client: Redis, tables: readonly Table[], node: string): Promise<Reading | undefined> {
    const keys = this.#keys;
    const transaction = client.multi().pttl(keys.lease(node)).hmget(keys.lease(node), 'lease', 'sizes');
    for (const table of tables) transaction.call('HGETALL', keys.table(node, table));
    const answers = await transaction.exec();
    const [left, [lease, sizes], ...found] = (answers ?? []).map(([error, answer]) => {
      if (error) throw error;
      return answer;
    }) as [number, [string | null, string | null], ...string[][]];
    if (lease === null || sizes === null) return undefined;
    const rows = Object.fromEntries(tables.map((table, index) => [table, pairs(found[index] as string[])]));
    const whole = tables.every((table) => rows[table]?.size === Number(sizes.split(' ')[TABLES.indexOf(table)]));
    return whole ? { node, age: Math.max(0, Number(lease) - left), content: { ...NOTHING, ...rows } as Content } : undefined;
  }

  #enterConnected(): void {
    this.enter({ state: 'connected', sentence: `Redis at ${this.#target.address} answers: the ledger is kept there.` });
  }

  #enterAway(error: LedgerError): void {
    this.enter({ state: 'away', sentence: error.message, error });
  }
}

function pairs(flat: readonly string[]): Rows {
  const rows = new Map<string, string>();
  for (let index = 0; index < flat.length; index += 2) rows.set(flat[index] as string, flat[index + 1] as string);
  return rows;
}
