import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

interface ApiRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Query;
  readonly body?: unknown;
  /** @default application/json */
  readonly contentType?: string;
  /** Timeout in milliseconds. @default 10000 */
  readonly timeout?: number;
  /** Limit on the length of the answer. @default none */
  readonly maximumBytes?: number | undefined;
}

/** The API server answered with an error, or the connection failed. */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  /**
   * @param status HTTP status. Undefined: no answer, so it is unknown whether the request took
   * effect.
   */
  constructor(
    message: string,
    readonly status: number | undefined,
  ) {
    super(message);
  }
}

/** The answer exceeds `maximumBytes`. */
export class LongAnswerError extends ApiError {}

const SECOND = 1000;
/** Milliseconds. Less than the 90 s after which the API server closes idle connections. */
const IDLE_TIMEOUT = 30 * SECOND;

/**
 * Sends requests to the API server over kept connections. client-node would open a connection and
 * build class instances for each request, which is too slow for a scheduler. It is used only to
 * load the kubeconfig and the credentials.
 */
export class ApiServer {
  readonly #config: KubeConfig;
  readonly #agent: HttpAgent;
  #closed = false;
  readonly #server: URL;

  constructor(config: KubeConfig) {
    const { server = '' } = config.getCurrentCluster() ?? {};
    if (!URL.canParse(server))
      throw new ApiError(
        'The kubeconfig names no API server: choose a context that has one.',
        undefined,
      );
    this.#config = config;
    this.#server = new URL(server);
    const kept = { keepAlive: true, timeout: IDLE_TIMEOUT };
    this.#agent = this.#server.protocol === 'http:' ? new HttpAgent(kept) : new HttpsAgent(kept);
  }

  /**
   * @param file a kubeconfig. Undefined: the service account of this pod, or else kubectl's
   * default.
   * @throws ProxyError KUBECONFIG_UNREADABLE. @throws ApiError if it names no API server
   */
  static load(file?: string): ApiServer {
    const config = new KubeConfig();
    try {
      if (file === undefined) config.loadFromDefault();
      else config.loadFromFile(file);
    } catch (error) {
      throw new ProxyError('KUBECONFIG_UNREADABLE', {
        file: file ?? process.env['KUBECONFIG'] ?? '~/.kube/config',
        reason: systemReason(error).replace(/\n.*/s, ''),
      });
    }
    return new ApiServer(config);
  }

  get address(): string {
    return this.#server.origin;
  }

  /** Returns the parsed JSON answer. @throws ApiError, LongAnswerError */
  async request<T>(asked: ApiRequest): Promise<T> {
    const { timeout = 10 * SECOND } = asked;
    const signal = AbortSignal.timeout(timeout);
    try {
      const response = await this.#send(asked, signal);
      return JSON.parse(await textOf(response, asked)) as T;
    } catch (error) {
      if (error instanceof ApiError) throw error;
      throw this.#unanswered(asked, signal.aborted ? silence(timeout) : (error as Error).message);
    }
  }

  /**
   * Returns the answer as a stream, for watches. The timeout ends with its start. @throws ApiError
   */
  async stream(asked: ApiRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const { timeout = 10 * SECOND } = asked;
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(), timeout);
    try {
      const response = await this.#send(asked, AbortSignal.any([signal, patience.signal]));
      // Detects a peer that vanished without closing, in about half a minute.
      response.socket.setKeepAlive(true, 20 * SECOND);
      return response;
    } catch (error) {
      if (error instanceof ApiError) throw error;
      throw this.#unanswered(
        asked,
        patience.signal.aborted ? silence(timeout) : (error as Error).message,
      );
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#closed = true;
    this.#agent.destroy();
  }

  async #send(asked: ApiRequest, signal: AbortSignal): Promise<IncomingMessage> {
    const body = asked.body === undefined ? undefined : JSON.stringify(asked.body);
    const options = await this.#options(asked, body, signal);
    const response = await this.#respond(options, body);
    const { statusCode: status = 0 } = response;
    if (status >= 200 && status < 300) return response;
    throw refusal(asked, status, await textOf(response, asked));
  }

  /**
   * Retries on another connection if the server closes an idle one just when it is reused.
   */
  async #respond(
    options: RequestOptions,
    body: string | undefined,
    again = false,
  ): Promise<IncomingMessage> {
    const send = this.#server.protocol === 'http:' ? httpRequest : httpsRequest;
    let reused = false;
    try {
      return await new Promise<IncomingMessage>((resolve, reject) => {
        const request = send(options, resolve);
        const failed = (error: Error) => {
          reused = request.reusedSocket;
          reject(error);
        };
        request.on('error', failed).end(body);
      });
    } catch (error) {
      if (
        again ||
        !reused ||
        this.#closed ||
        (error as NodeJS.ErrnoException).code !== 'ECONNRESET'
      )
        throw error;
      return this.#respond(options, body, true);
    }
  }

  async #options(
    { method = 'GET', path, query = {}, contentType }: ApiRequest,
    body: string | undefined,
    signal: AbortSignal,
  ) {
    const options: RequestOptions = {};
    // Service account tokens rotate, so apply them to each request.
    await this.#config.applyToHTTPSOptions(
      options as Parameters<KubeConfig['applyToHTTPSOptions']>[0],
    );
    const { hostname, port, pathname } = this.#server;
    const target = new URL(`${pathname.replace(/\/$/, '')}${path}`, this.#server);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) target.searchParams.set(name, String(value));
    const content = body !== undefined && {
      'content-type': contentType ?? 'application/json',
      'content-length': Buffer.byteLength(body),
    };
    const headers = { ...options.headers, accept: 'application/json', ...content };
    const address = {
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port,
      path: target.pathname + target.search,
    };
    return {
      ...options,
      ...address,
      method,
      headers,
      agent: this.#agent,
      signal,
    } as RequestOptions;
  }

  #unanswered({ method = 'GET', path }: ApiRequest, reason: string): ApiError {
    return new ApiError(
      `The API server ${this.address} was asked to ${method} ${path}, and did not answer: ` +
        `${reason}.`,
      undefined,
    );
  }
}

/** @throws LongAnswerError */
async function textOf(
  response: IncomingMessage,
  { method = 'GET', path, maximumBytes = Number.POSITIVE_INFINITY }: ApiRequest,
): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maximumBytes)
      throw new LongAnswerError(
        `The API server's answer to ${method} ${path} exceeds ${maximumBytes} bytes.`,
        undefined,
      );
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length).toString();
}

function silence(timeout: number): string {
  return `no answer came within ${timeout / SECOND} s`;
}

function refusal({ method = 'GET', path }: ApiRequest, status: number, answer: string): ApiError {
  let said = answer;
  try {
    said = (JSON.parse(answer) as { message?: string }).message ?? answer;
  } catch {
    // The answer of a proxy in between is no JSON, and is shown unchanged.
  }
  return new ApiError(
    `The API server refused to ${method} ${path} (${status}): ${said.slice(0, 1000).trim()}`,
    status,
  );
}
