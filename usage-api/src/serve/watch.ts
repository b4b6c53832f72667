import type { ServerResponse } from 'node:http';
import { UsageError } from '../errors.js';
import { API_VERSION, type UsageObject } from '../resources.js';
import { type Change, type Collection, keyOf } from '../usage/collection.js';
import type { Query } from './query.js';
import { type TableShape, table } from './table.js';

export interface WatchOptions<T extends UsageObject> {
  readonly collection: Collection<T>;
  readonly query: Query<T>;
  /** Undefined: objects. */
  readonly tableShape: TableShape<T> | undefined;
  /** Kind of the objects, for bookmarks. */
  readonly kind: string;
  readonly response: ServerResponse;
}

const BOOKMARK_EVERY = 60_000;
/** Who reads slower than we write is let go: it lists again. */
const MOST_UNREAD = 8 * 1024 * 1024;

/** One watch: events as lines of JSON, until its time is over or the other end has gone. */
export class Watch<T extends UsageObject> {
  readonly #options: WatchOptions<T>;
  readonly #told = new Set<string>();
  readonly #listener = (changes: readonly Change<T>[]) => this.#tell(changes);
  readonly #timers: NodeJS.Timeout[] = [];
  #columnsTold = false;

  /** @throws UsageError VERSION_TOO_OLD; nothing was answered then */
  constructor(options: WatchOptions<T>) {
    this.#options = options;
    const { query, response, collection } = options;
    const { since } = query;
    const missed = since === undefined ? undefined : collection.changesSince(since);
    if (since !== undefined && !missed) throw new UsageError('VERSION_TOO_OLD', { version: since });
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    // Who goes on from a list knows what matched then, unless it changed meanwhile.
    if (missed)
      for (const object of collection.list().filter(query.selects)) this.#told.add(keyOf(object));
    this.#tell(
      missed ??
        collection
          .list()
          .map((object) => ({ type: 'ADDED', object, revision: collection.revision })),
    );
    collection.on('changes', this.#listener);
    response.once('close', () => this.end());
    this.#timers.push(setTimeout(() => this.end(), query.timeout));
    if (query.bookmarks) this.#timers.push(setInterval(() => this.#bookmark(), BOOKMARK_EVERY));
  }

  /** With the version from which another watch goes on. */
  end(): void {
    const { collection, query, response } = this.#options;
    collection.off('changes', this.#listener);
    for (const timer of this.#timers) clearTimeout(timer);
    if (response.writableEnded || response.destroyed) return;
    if (query.bookmarks) this.#bookmark();
    response.end();
  }

  /** What begins to match is added for this watch, and what ends to match deleted. */
  #tell(changes: readonly Change<T>[]): void {
    const { selects } = this.#options.query;
    for (const { type, object } of changes) {
      const key = keyOf(object);
      const known = this.#told.has(key);
      const matches = type !== 'DELETED' && selects(object);
      if (matches) this.#told.add(key);
      else this.#told.delete(key);
      if (matches) this.#write(known ? 'MODIFIED' : 'ADDED', this.#shaped(object));
      else if (known || (type === 'DELETED' && selects(object)))
        this.#write('DELETED', this.#shaped(object));
    }
  }

  #shaped(object: T): object {
    const { tableShape } = this.#options;
    if (!tableShape) return object;
    const withColumns = !this.#columnsTold;
    this.#columnsTold = true;
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
    if (response.writableLength > MOST_UNREAD) response.destroy();
  }
}
