import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';

/**
 * Milliseconds until clients of a Service stop connecting to a server that is no longer ready.
 */
export const DRAIN_DELAY = 5000;

/** Timeout in milliseconds for open requests at shutdown. A pod has 30 s to terminate. */
const SHUTDOWN_TIMEOUT = 10_000;

/** Limit on connections. An API server opens one for each concurrent request. */
const MAXIMUM_CONNECTIONS = 1024;
/** Timeout in milliseconds for the head of a request, and for the complete request. */
const HEAD_TIMEOUT = 10_000;
const REQUEST_TIMEOUT = 30_000;

/**
 * The connections of a server, with limits on their number and on the time to receive a request.
 * end() shuts the server down before the process exits. Node's close() would wait for connections
 * without a request, which clients such as an API server open in advance.
 */
export class Connections {
  readonly #server: HttpServer | HttpsServer;
  readonly #shutdownTimeout: number;
  readonly #sockets = new Set<Socket>();
  readonly #unanswered = new Set<ServerResponse>();
  #answered = () => {};

  /** @param shutdownTimeout timeout in milliseconds for open requests at shutdown */
  constructor(server: HttpServer | HttpsServer, shutdownTimeout = SHUTDOWN_TIMEOUT) {
    this.#server = server;
    this.#shutdownTimeout = shutdownTimeout;
    server.maxConnections = MAXIMUM_CONNECTIONS;
    server.headersTimeout = HEAD_TIMEOUT;
    server.requestTimeout = REQUEST_TIMEOUT;
    // Includes sockets in the TLS handshake, which no method of an HTTPS server closes.
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
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

  #closeAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
