import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Agent, type RequestOptions, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { KubeConfig } from '@kubernetes/client-node';
import type { ControlPlane } from '../control-plane.js';

/**
 * What can be held back: bindings and reads of one pod before the API server gets them, and its
 * answers to reads.
 */
type Held = 'bindings' | 'questions' | 'answers';

/**
 * A proxy to a real API server that holds requests back. A request that the client gave up still
 * continues.
 */
export class SlowWay {
  readonly #server: Server;
  readonly #config = new KubeConfig();
  readonly #target: URL;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #held = new Map<Held, (() => void)[]>();
  #questions = 0;

  private constructor(plane: ControlPlane) {
    this.#config.loadFromFile(plane.adminKubeconfig);
    this.#target = new URL(plane.url);
    this.#server = createServer(
      (asked, answer) => void this.#pass(asked, answer).catch(() => answer.destroy()),
    );
  }

  /** The caller calls stop(). */
  static async start(plane: ControlPlane): Promise<SlowWay> {
    const way = new SlowWay(plane);
    await new Promise<void>((resolve) => way.#server.listen(0, '127.0.0.1', resolve));
    return way;
  }

  /** For a client that uses this proxy as the administrator. */
  kubeconfig(directory: string): string {
    const file = path.join(directory, 'slow-way.kubeconfig');
    const server = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    // client-node requires this for plain HTTP.
    const cluster = { server, 'insecure-skip-tls-verify': true };
    const context = { cluster: 'test', user: 'user' };
    const named = {
      clusters: [{ name: 'test', cluster }],
      users: [{ name: 'user' }],
      contexts: [{ name: 'test', context }],
    };
    writeFileSync(
      file,
      JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'test', ...named }),
    );
    return file;
  }

  /** Reads of one pod so far. */
  get questions(): number {
    return this.#questions;
  }

  hold(what: Held): void {
    this.#held.set(what, []);
  }

  /** Number of requests that are held back. */
  count(what: Held): number {
    return this.#held.get(what)?.length ?? 0;
  }

  letGo(what: Held): void {
    const held = this.#held.get(what) ?? [];
    this.#held.delete(what);
    for (const go of held) go();
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
    this.#agent.destroy();
  }

  async #pass(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = asked;
    const body = await buffer(asked);
    const question = method === 'GET' && /\/pods\/[^/]+$/.test(url);
    if (question) this.#questions++;
    if (url.endsWith('/binding')) await this.#wait('bindings');
    if (question) await this.#wait('questions');
    const options: RequestOptions = {};
    await this.#config.applyToHTTPSOptions(
      options as Parameters<KubeConfig['applyToHTTPSOptions']>[0],
    );
    const { hostname, port } = this.#target;
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request(
        {
          ...options,
          hostname,
          port,
          method,
          path: url,
          headers: asked.headers,
          agent: this.#agent,
        },
        resolve,
      );
      sent.on('error', reject).end(body);
    });
    if (question) await this.#wait('answers');
    response.on('error', () => answer.destroy()).on('aborted', () => answer.destroy());
    answer.on('close', () => response.destroy());
    answer.writeHead(response.statusCode ?? 0, response.headers);
    answer.flushHeaders();
    response.pipe(answer);
  }

  async #wait(what: Held): Promise<void> {
    const held = this.#held.get(what);
    if (held !== undefined) await new Promise<void>((resolve) => held.push(resolve));
  }
}
