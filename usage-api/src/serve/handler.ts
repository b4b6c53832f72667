import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { type Definition, NODE_USAGE, POD_USAGE } from '../definitions.js';
import { UsageError } from '../errors.js';
import { API_VERSION, type UsageObject } from '../resources.js';
import type { Board } from '../usage/board.js';
import { type Collection, keyOf } from '../usage/collection.js';
import type { Access } from './access.js';
import { answer, warn } from './answer.js';
import { answerDashboard } from './dashboard.js';
import { apiResourceList } from './discovery.js';
import { authenticate, type FrontProxy, type User } from './front-proxy.js';
import { openApi, openApiIndex } from './openapi.js';
import { type Query, readQuery, wantsTable, wantsWatch, writeContinue } from './query.js';
import { DASHBOARD, readPath, type Target } from './request.js';
import { table } from './table.js';
import { Watch } from './watch.js';
import { Watches } from './watches.js';

interface HandlerOptions {
  readonly board: Board;
  readonly access: Access;
  /** Returns the current value. */
  readonly frontProxy: () => FrontProxy | undefined;
}

const DEFINITIONS = [POD_USAGE, NODE_USAGE];

/** Namespace and name in the request path. */
interface Place {
  readonly namespace: string | undefined;
  readonly name: string | undefined;
}

/** Answers the requests of the TLS server. */
export class Handler {
  readonly #options: HandlerOptions;
  readonly #watches = new Watches();

  constructor(options: HandlerOptions) {
    this.#options = options;
  }

  /** Number of open watches. */
  get watches(): number {
    return this.#watches.size;
  }

  /** Ends all watches. */
  close(): void {
    this.#watches.end();
  }

  /** @throws UsageError */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const user = this.#authenticate(request, response);
    const { url: path = '/', method = '' } = request;
    const base = 'https://localhost';
    const url = URL.canParse(path, base) ? new URL(path, base) : undefined;
    const target = url && readPath(url.pathname);
    if (!target) throw new UsageError('NO_SUCH_PATH', { path: url?.pathname ?? path });
    if (method !== 'GET') throw new UsageError('READ_ONLY', { method });
    if (target.what === 'dashboard') return this.#dashboard(response, user, target);
    if (target.what !== 'pods' && target.what !== 'nodes')
      return answer(response, documentOf(target.what));
    const { board } = this.#options;
    const asked = { request, response, parameters: url.searchParams, user, place: target };
    if (target.what === 'pods')
      return this.#read({ ...asked, definition: POD_USAGE, collection: board.pods });
    return this.#read({ ...asked, definition: NODE_USAGE, collection: board.nodes });
  }

  /** The page itself holds no data: it asks for them with the rights of its user. */
  async #dashboard(response: ServerResponse, user: User, { namespace }: Place): Promise<void> {
    await this.#options.access.check(user, {
      verb: 'list',
      resource: DASHBOARD,
      namespace,
      namespaced: true,
      name: undefined,
    });
    answerDashboard(response);
  }

  /** Closes the connection of an unauthenticated peer. @throws UsageError NOT_THROUGH_API_SERVER */
  #authenticate(request: IncomingMessage, response: ServerResponse): User {
    const { shouldKeepAlive } = response;
    response.shouldKeepAlive = false;
    const user = authenticate(
      request.socket as TLSSocket,
      request.headersDistinct,
      this.#options.frontProxy(),
    );
    response.shouldKeepAlive = shouldKeepAlive;
    return user;
  }

  async #read<T extends UsageObject>(asked: ReadRequest<T>): Promise<void> {
    const { request, response, definition, collection, place, user } = asked;
    // A watch of a single object by path is answered as a get: it is deprecated, kubectl does not
    // use it, and a field selector replaces it.
    const verb =
      place.name === undefined ? (wantsWatch(asked.parameters) ? 'watch' : 'list') : 'get';
    await this.#options.access.check(user, {
      verb,
      resource: definition.name,
      namespaced: definition.namespaced,
      ...place,
    });
    // Parse selectors only after authorization.
    const query = readQuery(asked.parameters, definition);
    const asTable = wantsTable(request.headers);
    const { board } = this.#options;
    if (!board.ready) throw new UsageError('NOT_READY');
    await board.refresh();
    if (board.warning !== undefined) warn(response, board.warning);
    const shape = { definition, includeObject: query.includeObject };
    if (place.name !== undefined) {
      const object = this.#find(collection, definition, place);
      return answer(
        response,
        asTable
          ? table(shape, [object], { resourceVersion: object.metadata.resourceVersion })
          : object,
      );
    }
    const here = within(query, place);
    if (query.watch) {
      const tableShape = asTable ? shape : undefined;
      const options = { collection, query: here, tableShape, kind: definition.kind, response };
      return this.#watches.open(user.name, response, () => new Watch(options));
    }
    const { items, metadata } = page(collection, here);
    answer(
      response,
      asTable
        ? table(shape, items, metadata)
        : { kind: `${definition.kind}List`, apiVersion: API_VERSION, metadata, items },
    );
  }

  #find<T extends UsageObject>(
    collection: Collection<T>,
    definition: Definition<T>,
    { namespace, name = '' }: Place,
  ): T {
    const object = collection.get(namespace === undefined ? name : `${namespace}/${name}`);
    if (object) return object;
    throw new UsageError('NO_SUCH_OBJECT', {
      resource: `${definition.name}.${API_VERSION.split('/')[0]}`,
      name,
      hint: definition.notFoundHint,
    });
  }
}

interface ReadRequest<T extends UsageObject> {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly parameters: URLSearchParams;
  readonly user: ReturnType<typeof authenticate>;
  readonly place: Place;
  readonly definition: Definition<T>;
  readonly collection: Collection<T>;
}

/** Restricts a query to the namespace in the path. */
function within<T extends UsageObject>(query: Query<T>, { namespace }: Place): Query<T> {
  if (namespace === undefined) return query;
  return {
    ...query,
    selects: (object) => object.metadata.namespace === namespace && query.selects(object),
  };
}

/**
 * Each page shows the current objects: a pod may appear or disappear between pages, but none is
 * listed twice.
 */
function page<T extends UsageObject>(
  collection: Collection<T>,
  { selects, limit, after }: Query<T>,
): { items: T[]; metadata: object } {
  const rest = collection
    .list()
    .filter((object) => (after === undefined || keyOf(object) > after) && selects(object));
  const items = limit === 0 ? rest : rest.slice(0, limit);
  const last = items.at(-1);
  const more = last && items.length < rest.length ? { continue: writeContinue(keyOf(last)) } : {};
  return { items, metadata: { resourceVersion: String(collection.revision), ...more } };
}

function documentOf(what: Exclude<Target['what'], 'pods' | 'nodes' | 'dashboard'>): object {
  switch (what) {
    case 'resources':
      return apiResourceList(DEFINITIONS);
    case 'openapi':
      return openApiIndex();
    case 'openapiGroup':
      return openApi(DEFINITIONS);
  }
}
