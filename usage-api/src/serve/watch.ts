import type { ServerResponse } from 'node:http';
import { UsageError } from '../errors.js';
import { API_VERSION, type UsageObject } from '../resources.js';
import { type Change, type Collection, keyOf } from '../usage/collection.js';
import type { Query } from './query.js';
import { type TableShape, table } from './table.js';

interface WatchOptions<T extends UsageObject> {
  readonly collection: Collection<T>;
  readonly query: Query<T>;
  /** Undefined: send objects instead of tables. */
  readonly tableShape: TableShape<T> | undefined;
  /** Kind of the objects in bookmarks. */
  readonly kind: string;
  readonly response: ServerResponse;
}

const BOOKMARK_INTERVAL = 60_000;
/** Milliseconds by which a slow client may be late. It is disconnected then, and lists again. */
const MAXIMUM_DELAY = 60_000;

/**
 * One watch: sends events as lines of JSON until it times out or the client disconnects. It writes
 * only as fast as the client reads, so a client that does not read takes no memory.
 */
export class Watch<T extends UsageObject> {
  readonly #options: WatchOptions<T>;
  readonly #sent = new Set<string>();
  /** The last change of each object that is still to be sent, in the order of their versions. */
  readonly #pending = new Map<string, { readonly change: Change<T>; readonly since: number }>();
  readonly #listener = (changes: readonly Change<T>[]) => this.#queue(changes);
  readonly #timers: NodeJS.Timeout[] = [];
  #columnsSent = false;

  /** @throws UsageError VERSION_TOO_OLD, before it answers anything */
  constructor(options: WatchOptions<T>) {
    this.#options = options;
    const { query, response, collection } = options;
    const { since } = query;
    const missed = since === undefined ? undefined : collection.changesSince(since);
    if (since !== undefined && !missed) throw new UsageError('VERSION_TOO_OLD', { version: since });
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    // The client has listed before, so it knows the matching objects that did not change since.
    if (missed)
      for (const object of collection.list().filter(query.selects)) this.#sent.add(keyOf(object));
    response.on('drain', this.#flush);
    this.#queue(
      missed ??
        collection
          .list()
          .map((object) => ({ type: 'ADDED', object, revision: collection.revision })),
    );
    collection.on('changes', this.#listener);
    response.once('close', () => this.end());
    this.#timers.push(setTimeout(() => this.end(), query.timeout));
    if (query.bookmarks) this.#timers.push(setInterval(() => this.#bookmark(), BOOKMARK_INTERVAL));
  }

  /** Sends a last bookmark, from which another watch can continue. */
  end(): void {
    const { collection, query, response } = this.#options;
    collection.off('changes', this.#listener);
    response.off('drain', this.#flush);
    for (const timer of this.#timers) clearTimeout(timer);
    if (response.writableEnded || response.destroyed) return;
    if (query.bookmarks) this.#bookmark();
    response.end();
  }

  #queue(changes: readonly Change<T>[]): void {
    const now = Date.now();
    const [oldest] = this.#pending.values();
    if (oldest && now - oldest.since > MAXIMUM_DELAY) {
      this.#options.response.destroy();
      return;
    }
    for (const change of changes) {
      const key = keyOf(change.object);
      this.#pending.delete(key);
      this.#pending.set(key, { change, since: now });
    }
    this.#flush();
  }

  readonly #flush = () => {
    const { response } = this.#options;
    for (const [key, { change }] of this.#pending) {
      if (response.writableNeedDrain || response.destroyed) return;
      this.#pending.delete(key);
      this.#send(key, change);
    }
  };

  /** An object that starts to match is sent as ADDED, one that no longer matches as DELETED. */
  #send(key: string, { type, object }: Change<T>): void {
    const { selects } = this.#options.query;
    const known = this.#sent.has(key);
    const matches = type !== 'DELETED' && selects(object);
    if (matches) this.#sent.add(key);
    else this.#sent.delete(key);
    if (matches) this.#write(known ? 'MODIFIED' : 'ADDED', this.#shaped(object));
    else if (known || (type === 'DELETED' && selects(object)))
      this.#write('DELETED', this.#shaped(object));
  }

  #shaped(object: T): object {
    const { tableShape } = this.#options;
    if (!tableShape) return object;
    const withColumns = !this.#columnsSent;
    this.#columnsSent = true;
    return table(
      tableShape,
      [object],
      { resourceVersion: object.metadata.resourceVersion },
      withColumns,
    );
  }

  #bookmark(): void {
    if (this.#pending.size > 0) return;
    const { kind, collection, tableShape } = this.#options;
    const metadata = { resourceVersion: String(collection.revision) };
    const object = { kind, apiVersion: API_VERSION, metadata };
    this.#write('BOOKMARK', tableShape ? table(tableShape, [], metadata, false) : object);
  }

  #write(type: string, object: object): void {
    this.#options.response.write(`${JSON.stringify({ type, object })}\n`);
  }
}
