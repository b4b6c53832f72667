import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';

/** Who finds a server by its Service learns within so many milliseconds that one which is not ready any more is asked no more. */
export const FAREWELL = 5000;

/** Milliseconds that requests under way have at the end; a pod has 30 s for all of its end. */
const LONGEST_END = 10_000;

/**
 * The connections of a server that is to end before its process does. Node's own close() waits for each on which nothing was asked yet,
 * and clients such as an API server open some in advance.
 */
export class Connections {
  readonly #server: HttpServer | HttpsServer;
  readonly #longestEnd: number;
  readonly #sockets = new Set<Socket>();
  readonly #unanswered = new Set<ServerResponse>();
  #answered = () => {};

  constructor(server: HttpServer | HttpsServer, longestEnd = LONGEST_END) {
    this.#server = server;
    this.#longestEnd = longestEnd;
    // Those whose TLS handshake is not over too, which no method of an HTTPS server closes.
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

  /** Takes no more, sees requests under way to their end within a bound, and closes all. */
  async end(): Promise<void> {
    // A connection on which somebody is answered just now would be kept after that, and more be asked on it.
    this.#server.keepAliveTimeout = 1;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const late = setTimeout(() => this.#closeAll(), this.#longestEnd);
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
