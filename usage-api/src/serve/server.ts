import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { keepContext } from '@nvidia-virtual/kube-common/certificates';
import { addressText, type NetworkAddress } from '@nvidia-virtual/service/configuration/kinds';
import { Connections } from '@nvidia-virtual/service/connections';
import type { Logger } from 'pino';
import { UsageError } from '../errors.js';
import type { Metrics } from '../metrics.js';
import { answerError } from './answer.js';
import type { Handler } from './handler.js';

interface ServerOptions {
  readonly handler: Handler;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'answered'>;
}

/** Milliseconds. */
const HANDSHAKE_TIMEOUT = 10_000;

/**
 * The TLS server to which the Kubernetes API server forwards requests. Its certificates are set
 * after start and can change at run time.
 */
export class UsageServer {
  readonly server: Server;
  readonly #connections: Connections;
  readonly #options: ServerOptions;

  constructor(options: ServerOptions) {
    this.#options = options;
    // A client without a certificate gets an HTTP error that explains it.
    this.server = createServer({
      requestCert: true,
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      handshakeTimeout: HANDSHAKE_TIMEOUT,
    });
    this.#connections = new Connections(this.server);
    this.server.on('request', (request, response) => {
      const begin = performance.now();
      const watch = /[?&]watch=(true|1)/.test(request.url ?? '');
      response.once('close', () =>
        options.metrics.answered(response.statusCode, (performance.now() - begin) / 1000, watch),
      );
      options.handler.handle(request, response).catch((error: unknown) => {
        if (!(error instanceof UsageError))
          options.logger.error({ err: error, url: request.url }, 'request failed');
        answerError(response, error);
      });
    });
    keepContext(this.server);
  }

  /** Sets the CA bundle (PEM) for client certificates. */
  trust(authority: string): void {
    this.server.setSecureContext({ ca: authority });
  }

  /** @throws UsageError ADDRESS_NOT_SERVED */
  async listen(address: NetworkAddress): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      const refuse = ({ message }: Error) =>
        reject(
          new UsageError('ADDRESS_NOT_SERVED', {
            address: addressText(address),
            reason: message,
          }),
        );
      this.server.once('error', refuse);
      this.server.listen(address, () => {
        this.server.off('error', refuse);
        resolve();
      });
    });
    return (this.server.address() as AddressInfo).port;
  }

  /** Ends all watches and waits for the other requests. */
  async close(): Promise<void> {
    this.#options.handler.close();
    await this.#connections.end();
  }
}
