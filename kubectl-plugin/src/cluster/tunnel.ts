import { request as plainRequest } from 'node:http';
import { Agent, request } from 'node:https';
import { isIPv6, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions, connect } from 'node:tls';

/** Connections through an HTTP proxy, which passes on bytes and sees none of them in clear. */
export class TunnelAgent extends Agent {
  readonly #proxy: URL;

  /** @param proxy a URL, http or https, perhaps with user and password */
  constructor(proxy: string, options: ConstructorParameters<typeof Agent>[0]) {
    super(options);
    this.#proxy = new URL(proxy);
  }

  override createConnection(options: ConnectionOptions, done: (error: Error | null, stream: Duplex) => void): undefined {
    const { protocol, username, password } = this.#proxy;
    const { host = '' } = options;
    const target = `${isIPv6(host) ? `[${host}]` : host}:${options.port}`;
    const login = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64');
    const headers = { host: target, ...(username === '' ? {} : { 'proxy-authorization': `Basic ${login}` }) };
    const fail = (reason: string) => done(Object.assign(new Error(reason), { code: 'EPROXY' }), undefined as unknown as Duplex);
    const send = protocol === 'https:' ? request : plainRequest;
    send(new URL(this.#proxy.origin), { method: 'CONNECT', path: target, headers, agent: false })
      .once('connect', ({ statusCode }, socket: Socket) => {
        if (statusCode !== 200) fail(`the proxy ${this.#proxy.host} answered ${statusCode} to the wish for a connection to ${target}`);
        else done(null, connect({ servername: host, ...options, socket } as ConnectionOptions));
      })
      .once('error', (error) => fail(`the proxy ${this.#proxy.host} cannot be reached: ${error.message}`))
      .end();
  }
}
