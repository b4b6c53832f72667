import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, connect as open, type Socket } from 'node:net';

/**
 * The connections of one client to the API server. They can be cut or black-holed while other
 * clients reach it.
 */
export class Forwarder {
  readonly #target: URL;
  readonly #server = createServer((client) => this.#forward(client));
  readonly #connections = new Set<Socket>();
  /** Refuses all connections. */
  #closed = false;
  /** Accepts connections but does not answer, as if the machine had vanished. */
  #silent = false;

  private constructor(target: URL) {
    this.#target = target;
  }

  static async start(url: string): Promise<Forwarder> {
    const forwarder = new Forwarder(new URL(url));
    await once(forwarder.#server.listen(0, '127.0.0.1'), 'listening');
    return forwarder;
  }

  /** Writes a copy of the kubeconfig whose user connects through this forwarder. */
  writeKubeconfig(like: string, file: string): string {
    const { port } = this.#server.address() as AddressInfo;
    writeFileSync(
      file,
      readFileSync(like, 'utf8').replaceAll(this.#target.origin, `https://127.0.0.1:${port}`),
    );
    return file;
  }

  set closed(closed: boolean) {
    this.#closed = closed;
    if (closed) this.#cut();
  }

  /** Cuts existing connections. */
  set silent(silent: boolean) {
    this.#silent = silent;
    this.#cut();
  }

  end(): void {
    this.closed = true;
    this.#server.close();
  }

  #cut(): void {
    for (const connection of this.#connections) connection.destroy();
  }

  #forward(client: Socket): void {
    if (this.#closed) {
      client.destroy();
      return;
    }
    if (this.#silent) {
      this.#connections.add(client.on('error', () => client.destroy()));
      client.once('close', () => this.#connections.delete(client));
      return;
    }
    const server = open(Number(this.#target.port), this.#target.hostname);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#connections.add(one);
      one.on('error', () => other.destroy());
      one.once('close', () => {
        this.#connections.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }
}
