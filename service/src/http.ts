import { chmodSync, lstatSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { ListenOptions } from 'node:net';
import type { Logger } from 'pino';
import { type Address, addressText } from './configuration/kinds.js';
import { Connections } from './connections.js';
import { ProxyError, systemReason } from './errors.js';
import { whyNotServed } from './socket.js';

/** Undefined if the condition holds, otherwise the reason as a sentence. */
type Condition = () => string | undefined;

export interface HttpOptions {
  /** Metrics in Prometheus' text format. */
  readonly metrics: { readonly contentType: string; exposition(): Promise<string> };
  /** Conditions for readiness, by name. */
  readonly conditions: Readonly<Record<string, Condition>>;
  /** Reported in addition, without effect on readiness. */
  readonly notes?: Readonly<Record<string, Condition>>;
  readonly logger: Logger;
  /**
   * Timeout in milliseconds for receiving a request, computing the metrics, and an idle client.
   * @default 10000
   */
  readonly timeout?: number;
  /** @default 64 */
  readonly connections?: number;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const MAXIMUM_HEADER_BYTES = 8192;

/**
 * Serves /metrics, /healthz and /readyz, with limits on connections and time.
 */
export class HttpService {
  readonly #options: HttpOptions;
  readonly #timeout: number;
  #server: Server | undefined;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.#timeout = options.timeout ?? 10_000;
  }

  /**
   * URL with the actual port: `http://127.0.0.1:9400`; undefined while it is not served.
   */
  get address(): string | undefined {
    const bound = this.#server?.address();
    return bound
      ? shown(
          typeof bound === 'string' ? { path: bound } : { host: bound.address, port: bound.port },
        )
      : undefined;
  }

  /**
   * Moves the server to another address. Undefined stops it.
   * @throws ProxyError HTTP_NOT_SERVED; the former address stays
   */
  async move(address: Address | undefined): Promise<void> {
    const server = address && (await this.#listen(address));
    const former = this.#server;
    this.#server = server;
    former?.close();
    former?.closeAllConnections();
  }

  async #listen(address: Address): Promise<Server> {
    const server = this.#makeServer();
    try {
      if ('path' in address) await removeStaleSocket(address.path);
      await new Promise<void>((resolve, reject) =>
        server.once('error', reject).listen(address as ListenOptions, resolve),
      );
      if ('path' in address) chmodSync(address.path, 0o600);
      return server;
    } catch (error) {
      server.close();
      throw new ProxyError('HTTP_NOT_SERVED', {
        address: shown(address),
        reason: systemReason(error),
      });
    }
  }

  #makeServer(): Server {
    const timeout = this.#timeout;
    const times = {
      keepAliveTimeout: timeout,
      connectionsCheckingInterval: timeout / 4,
    };
    const server = createServer(
      { ...times, maxHeaderSize: MAXIMUM_HEADER_BYTES },
      (request, response) => void this.#answer(request, response),
    );
    // A pod must not keep the kubelet's probes away.
    const { connections: maximum = 64 } = this.#options;
    new Connections(server, { maximum, headTimeout: timeout, requestTimeout: timeout });
    return server.setTimeout(timeout);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, type, body } = await this.#answerTo(request).catch((error: Error) =>
      this.#failure(request, error),
    );
    response.writeHead(status, {
      'content-type': type,
      'content-length': Buffer.byteLength(body),
      ...(status === 405 && { allow: 'GET, HEAD', connection: 'close' }),
    });
    response.end(request.method === 'HEAD' ? undefined : body);
  }

  async #answerTo({ method, url = '' }: IncomingMessage): Promise<Answer> {
    if (method !== 'GET' && method !== 'HEAD') return text(405, 'Only GET and HEAD are supported.');
    switch (url.split('?')[0]) {
      case '/metrics':
        return this.#metrics();
      case '/healthz':
        return json(200, { alive: true });
      case '/readyz':
        return this.#readiness();
      default:
        return text(404, 'This server serves /metrics, /healthz and /readyz.');
    }
  }

  #failure({ url }: IncomingMessage, error: Error): Answer {
    const sentence = `${url} failed: ${error.message}`;
    this.#options.logger.warn(sentence);
    return text(503, sentence);
  }

  async #metrics(): Promise<Answer> {
    const { metrics } = this.#options;
    return {
      status: 200,
      type: metrics.contentType,
      body: await within(this.#timeout, metrics.exposition()),
    };
  }

  #readiness(): Answer {
    const { conditions, notes = {} } = this.#options;
    const [notReady, noted] = [whatFails(conditions), whatFails(notes)];
    const ready = Object.keys(notReady).length === 0;
    const answer = {
      ready,
      ...(!ready && { notReady }),
      ...(Object.keys(noted).length > 0 && { notes: noted }),
    };
    return json(ready ? 200 : 503, answer);
  }
}

function whatFails(
  conditions: Readonly<Record<string, Condition>>,
): Record<string, string | undefined> {
  const reasons = Object.entries(conditions).map(
    ([name, condition]) => [name, condition()] as const,
  );
  return Object.fromEntries(reasons.filter(([, reason]) => reason !== undefined));
}

function text(status: number, sentence: string): Answer {
  return { status, type: 'text/plain; charset=utf-8', body: `${sentence}\n` };
}

function json(status: number, value: object): Answer {
  return { status, type: 'application/json', body: `${JSON.stringify(value)}\n` };
}

function shown(address: Address): string {
  return 'path' in address ? address.path : `http://${addressText(address)}`;
}

/** Removes the socket of a killed process. A served socket stays, and listening fails then. */
async function removeStaleSocket(path: string): Promise<void> {
  const isSocket = lstatSync(path, { throwIfNoEntry: false })?.isSocket() ?? false;
  if (isSocket && (await whyNotServed(path)) !== undefined) rmSync(path);
}

async function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const end = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`the metrics were not ready within ${milliseconds / 1000} s.`)),
      milliseconds,
    );
  });
  return Promise.race([promise, end]).finally(() => clearTimeout(timer));
}
