import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';
import { ProxyError, systemReason } from '@nvidia-virtual/service/errors';
import { checkSocketPath, clearStaleSocket, listenAt } from '@nvidia-virtual/service/socket';
import type { Closer } from './closer.js';

/**
 * The socket of the clients of one allocation.
 * - `own`, in the allocation's directory: atomically replaces the socket of an earlier gpu-proxy,
 *   so the path always exists. Every user with access to the directory may connect.
 * - `elsewhere`: removes a stale socket first. Only its owner may connect.
 */
export class ClientSocket {
  readonly path: string;
  readonly #closer: Closer;
  readonly #server: Server;
  readonly #elsewhere: boolean;
  #accept: (connection: Socket) => void;
  #open = false;
  #release = () => {};

  constructor(
    path: string,
    closer: Closer,
    accept: (connection: Socket) => void,
    place: 'own' | 'elsewhere' = 'own',
  ) {
    this.path = path;
    this.#closer = closer;
    this.#accept = accept;
    this.#elsewhere = place === 'elsewhere';
    this.#server = createServer({ pauseOnConnect: true }, (connection) => {
      closer.hold(connection);
      connection.on('error', () => connection.destroy());
      this.#accept(connection);
    });
  }

  /**
   * Replaces the handler of new connections. A socket first serves a grant, then the allocation
   * that the grant becomes.
   */
  set accept(accept: (connection: Socket) => void) {
    this.#accept = accept;
  }

  get open(): boolean {
    return this.#open;
  }

  /** @throws ProxyError SOCKET_PATH_LONG, SOCKET_BUSY, SOCKET_NOT_MADE */
  async listen(): Promise<void> {
    checkSocketPath(this.path);
    try {
      await (this.#elsewhere ? this.#listenElsewhere() : this.#replace());
      this.#release = this.#closer.holdListener(this.#server);
      this.#open = true;
    } catch (error) {
      if (error instanceof ProxyError) throw error;
      throw new ProxyError('SOCKET_NOT_MADE', { path: this.path, reason: systemReason(error) });
    }
  }

  /** Accepts no more connections and removes the file. */
  close(): void {
    if (!this.#open) return;
    this.leave();
    rmSync(this.path, { force: true });
  }

  /** Accepts no more connections. The file stays, so clients know that a gpu-proxy will return. */
  leave(): void {
    this.#open = false;
    this.#server.close();
    this.#release();
  }

  async #replace(): Promise<void> {
    const unfinished = path.join(path.dirname(this.path), 'new.sock');
    rmSync(unfinished, { force: true });
    await listenAt(this.#server, unfinished, 0o666);
    renameSync(unfinished, this.path);
  }

  async #listenElsewhere(): Promise<void> {
    mkdirSync(path.dirname(this.path), { recursive: true });
    await clearStaleSocket(this.path);
    await listenAt(this.#server, this.path, 0o600);
  }
}
