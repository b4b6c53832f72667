import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';
import { ProxyError, systemReason } from './errors.js';
import { checkSocketPath, clearStaleSocket, listenAt } from './socket.js';

/**
 * The socket that the programs of one allocation connect to. In an allocation's own directory it is put in place in one step, over the one
 * that an earlier proxy left, so that at no moment there is none; whoever reaches the directory may connect. `elsewhere` it is made as any
 * server would, for its owner only.
 */
export class ClientSocket {
  readonly path: string;
  readonly #server: Server;
  readonly #elsewhere: boolean;
  #accept: (connection: Socket) => void;
  #open = false;

  constructor(path: string, accept: (connection: Socket) => void, place: 'own' | 'elsewhere' = 'own') {
    this.path = path;
    this.#accept = accept;
    this.#elsewhere = place === 'elsewhere';
    this.#server = createServer({ pauseOnConnect: true }, (connection) => {
      connection.on('error', () => connection.destroy());
      this.#accept(connection);
    });
  }

  /** Who takes the connections from now on: one socket may serve a grant first and then the allocation that it became. */
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
      this.#open = true;
    } catch (error) {
      if (error instanceof ProxyError) throw error;
      throw new ProxyError('SOCKET_NOT_MADE', { path: this.path, reason: systemReason(error) });
    }
  }

  /** Accepts nobody any more, and is gone. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#server.close();
    rmSync(this.path, { force: true });
  }

  /** Accepts nobody any more; the file stays, so that clients see that somebody is to come back. */
  leave(): void {
    this.#open = false;
    this.#server.close();
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
