import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';

/**
 * Milliseconds until clients of a Service stop connecting to a server that is no longer ready.
 */
export const DRAIN_DELAY = 5000;

/** Timeout in milliseconds for open requests at shutdown. A pod has 30 s to terminate. */
const SHUTDOWN_TIMEOUT = 10_000;

/**
 * Limit on connections. An API server opens one for each concurrent request. All of its requests
 * may come from one address, that of a proxy, so an address has no smaller limit.
 */
const MAXIMUM_CONNECTIONS = 1024;
/** Timeout in milliseconds for the head of a request, and for the complete request. */
const HEAD_TIMEOUT = 10_000;
const REQUEST_TIMEOUT = 30_000;

interface Limits {
  readonly maximum?: number;
  /** Timeout in milliseconds for open requests at shutdown. */
  readonly shutdownTimeout?: number;
  /** Milliseconds for the head of a request. */
  readonly headTimeout?: number;
  /** Milliseconds for all of a request. */
  readonly requestTimeout?: number;
}

/**
 * The connections of a server, with limits on their number and on the time to receive a request.
 * Beyond the limit, the address with the most connections loses one for each new one. So a client
 * that opens many cannot keep the others out.
 * end() shuts the server down before the process exits. Node's close() would wait for connections
 * without a request, which clients such as an API server open in advance.
 */
export class Connections {
  readonly #server: HttpServer | HttpsServer;
  readonly #maximum: number;
  readonly #shutdownTimeout: number;
  /** The oldest one first. */
  readonly #sockets = new Set<Socket>();
  readonly #unanswered = new Set<ServerResponse>();
  #answered = () => {};

  constructor(
    server: HttpServer | HttpsServer,
    {
      maximum = MAXIMUM_CONNECTIONS,
      shutdownTimeout = SHUTDOWN_TIMEOUT,
      headTimeout = HEAD_TIMEOUT,
      requestTimeout = REQUEST_TIMEOUT,
    }: Limits = {},
  ) {
    this.#server = server;
    this.#maximum = maximum;
    this.#shutdownTimeout = shutdownTimeout;
    server.headersTimeout = headTimeout;
    server.requestTimeout = requestTimeout;
    // Includes sockets in the TLS handshake, which no method of an HTTPS server closes.
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      if (this.#sockets.size > this.#maximum) this.#closeOne();
      socket.once('close', () => this.#sockets.delete(socket));
    });
    server.on('request', (_request: IncomingMessage, response: ServerResponse) => {
      this.#unanswered.add(response);
      response.once('close', () => {
        this.#unanswered.delete(response);
        this.#answered();
      });
    });
  }

  /** Accepts no more connections, waits for open requests with a timeout, and closes all. */
  async end(): Promise<void> {
    // Otherwise a connection with an open request would stay open for further ones.
    this.#server.keepAliveTimeout = 1;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const late = setTimeout(() => this.#closeAll(), this.#shutdownTimeout);
    this.#answered = () => {
      if (this.#unanswered.size === 0) this.#closeAll();
    };
    this.#answered();
    await closed;
    clearTimeout(late);
  }

  /** Closes the oldest connection of the address with the most; an idle one if there is one. */
  #closeOne(): void {
    const byAddress = new Map<string | undefined, Socket[]>();
    for (const socket of this.#sockets) {
      const sockets = byAddress.get(socket.remoteAddress) ?? [];
      byAddress.set(socket.remoteAddress, sockets);
      sockets.push(socket);
    }
    const [most = []] = [...byAddress.values()].toSorted((a, b) => b.length - a.length);
    const busy = new Set([...this.#unanswered].map(({ socket }) => socket && peerOf(socket)));
    const closed = most.find((socket) => !busy.has(peerOf(socket))) ?? most[0];
    if (!closed) return;
    this.#sockets.delete(closed); // 'close' is late if several connections arrive together
    closed.destroy();
  }

  #closeAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Names the peer's end of a connection, also if the socket is the TLS one of a request. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
