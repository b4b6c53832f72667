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
/** Bytes of backlog after which a slow client is disconnected. It lists again. */
const MAXIMUM_BACKLOG = 8 * 1024 * 1024;

/** One watch: sends events as lines of JSON until it times out or the client disconnects. */
export class Watch<T extends UsageObject> {
  readonly #options: WatchOptions<T>;
  readonly #sent = new Set<string>();
  readonly #listener = (changes: readonly Change<T>[]) => this.#send(changes);
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
    this.#send(
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
    for (const timer of this.#timers) clearTimeout(timer);
    if (response.writableEnded || response.destroyed) return;
    if (query.bookmarks) this.#bookmark();
    response.end();
  }

  /** An object that starts to match is sent as ADDED, one that no longer matches as DELETED. */
  #send(changes: readonly Change<T>[]): void {
    const { selects } = this.#options.query;
    for (const { type, object } of changes) {
      const key = keyOf(object);
      const known = this.#sent.has(key);
      const matches = type !== 'DELETED' && selects(object);
      if (matches) this.#sent.add(key);
      else this.#sent.delete(key);
      if (matches) this.#write(known ? 'MODIFIED' : 'ADDED', this.#shaped(object));
      else if (known || (type === 'DELETED' && selects(object)))
        this.#write('DELETED', this.#shaped(object));
    }
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
    const { kind, collection, tableShape } = this.#options;
    const metadata = { resourceVersion: String(collection.revision) };
    const object = { kind, apiVersion: API_VERSION, metadata };
    this.#write('BOOKMARK', tableShape ? table(tableShape, [], metadata, false) : object);
  }

  #write(type: string, object: object): void {
    const { response } = this.#options;
    response.write(`${JSON.stringify({ type, object })}\n`);
    if (response.writableLength > MAXIMUM_BACKLOG) response.destroy();
  }
}
