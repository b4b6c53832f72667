import { type IncomingMessage, type OutgoingHttpHeaders, Agent as PlainAgent, request as plainRequest } from 'node:http';
import { Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';
import type { SecureContextOptions } from 'node:tls';
import { TunnelAgent } from './tunnel.js';

/** How one reaches an API server and who one is there. */
export interface ApiTarget {
  /** A URL, perhaps with a path. */
  readonly server: string;
  /** Where a proxy is that connections go through. */
  readonly proxy?: string | undefined;
  /** Asked before each request: tokens and certificates are renewed. The same `tls` object means the same connections. */
  prepare(): Promise<ApiCredentials>;
}

export interface ApiCredentials {
  readonly tls: SecureContextOptions & { readonly servername?: string | undefined; readonly rejectUnauthorized?: boolean | undefined };
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
}

export interface ApiRequest {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Milliseconds until the whole answer must be there, or for `open()` its beginning; 0: any. @default 30000 */
  readonly timeout?: number;
  readonly signal?: AbortSignal;
}

/** What Kubernetes says of a request that it refuses. */
export interface ApiStatus {
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
}

/** The API server answered, and not with what was asked for. */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  constructor(
    readonly code: number,
    readonly status: ApiStatus,
    readonly path: string,
  ) {
    super(status.message ?? `the answer to ${path} was ${code}`);
  }
}

/** Nobody answered. */
export class ApiUnreachableError extends Error {
  override readonly name = 'ApiUnreachableError';

  constructor(
    readonly server: string,
    readonly reason: string,
    options?: ErrorOptions,
  ) {
    super(`${server} cannot be reached: ${reason}`, options);
  }
}

/** A certificate or key of ours, or an authority, is none. */
export class ApiCredentialsError extends Error {
  override readonly name = 'ApiCredentialsError';
}

const TIMEOUT = 30_000;

/** Speaks with an API server: JSON, one request at a time, and streams. */
export class ApiClient {
  readonly #target: ApiTarget;
  #agent: { readonly tls: ApiCredentials['tls']; readonly agent: PlainAgent } | undefined;

  constructor(target: ApiTarget) {
    this.#target = target;
  }

  get server(): string {
    return this.#target.server;
  }

  /** @throws ApiError, ApiUnreachableError */
  async json<T>(path: string, options: ApiRequest = {}): Promise<T> {
    return (await this.answer<T>(path, options)).body;
  }

  /** The same with the headers of the answer. */
  async answer<T>(path: string, options: ApiRequest = {}): Promise<{ body: T; headers: IncomingMessage['headers'] }> {
    const timeout = options.timeout ?? TIMEOUT;
    const deadline = timeout === 0 ? undefined : AbortSignal.timeout(timeout);
    const signals = [options.signal, deadline].filter((one) => one !== undefined);
    try {
      const response = await this.#open(path, { ...options, signal: AbortSignal.any(signals) });
      return { body: JSON.parse(await text(response)) as T, headers: response.headers };
    } catch (error) {
      throw deadline?.aborted ? new ApiUnreachableError(this.server, `no answer within ${timeout / 1000} s`) : this.#explain(error);
    }
  }

  /** A stream; its beginning is there. */
  async open(path: string, options: ApiRequest = {}): Promise<IncomingMessage> {
    const timeout = options.timeout ?? TIMEOUT;
    const late = new AbortController();
    const timer = timeout === 0 ? undefined : setTimeout(() => late.abort(), timeout);
    const signals = [options.signal, late.signal].filter((one) => one !== undefined);
    try {
      return await this.#open(path, { ...options, signal: AbortSignal.any(signals) });
    } catch (error) {
      throw late.signal.aborted ? new ApiUnreachableError(this.server, `no answer within ${timeout / 1000} s`) : this.#explain(error);
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#agent?.agent.destroy();
  }

  async #open(path: string, options: ApiRequest & { readonly signal: AbortSignal }): Promise<IncomingMessage> {
    const { tls, headers } = await this.#target.prepare();
    const body = options.body === undefined ? undefined : JSON.stringify(options.body);
    const sent: OutgoingHttpHeaders = { accept: 'application/json', ...headers, ...options.headers } as OutgoingHttpHeaders;
    if (body !== undefined) Object.assign(sent, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
    const url = new URL(this.server.replace(/\/$/, '') + path);
    const send = url.protocol === 'http:' ? plainRequest : request;
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const { method = 'GET', signal } = options;
      const outgoing = send(url, { method, headers: sent, agent: this.#agentFor(tls, url), signal }, resolve);
      outgoing.once('error', reject).end(body);
    });
    if ((response.statusCode ?? 0) < 300) return response;
    throw new ApiError(response.statusCode ?? 0, readStatus(await text(response)), path);
  }

  #agentFor(tls: ApiCredentials['tls'], url: URL): PlainAgent {
    if (this.#agent?.tls === tls) return this.#agent.agent;
    const { proxy } = this.#target;
    const secure = { keepAlive: true, ...tls } as ConstructorParameters<typeof Agent>[0];
    const plain = url.protocol === 'http:' ? new PlainAgent({ keepAlive: true }) : undefined;
    const agent = plain ?? (proxy === undefined ? new Agent(secure) : new TunnelAgent(proxy, secure));
    this.#agent = { tls, agent };
    return agent;
  }

  #explain(error: unknown): unknown {
    if (error instanceof ApiError || !(error instanceof Error) || error.name === 'AbortError') return error;
    const { code } = error as NodeJS.ErrnoException;
    if (code?.startsWith('ERR_OSSL_')) return new ApiCredentialsError(error.message, { cause: error });
    if (code === undefined && !(error instanceof SyntaxError)) return error;
    return new ApiUnreachableError(this.server, error.message || String(code), { cause: error });
  }
}

/** What is no Status may be a page of some proxy on the way: its beginning says which. */
function readStatus(body: string): ApiStatus {
  try {
    const status = JSON.parse(body) as ApiStatus & { readonly kind?: string };
    if (status.kind === 'Status') return status;
  } catch {
    // Told below.
  }
  const line = body.trim().split('\n', 1)[0]?.slice(0, 200);
  return line ? { message: line } : {};
}
