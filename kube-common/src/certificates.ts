import type { Server } from 'node:https';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Logger } from 'pino';
import type { ApiServer } from './api-server.js';
import type { KeyPair } from './certificates/authority.js';
import { keepKeyring, type ObjectName } from './certificates/secret.js';
import { type CaBundleHolder, trust } from './certificates/trust.js';

export type { KeyPair } from './certificates/authority.js';
export type { ObjectName } from './certificates/secret.js';
export type { CaBundleHolder } from './certificates/trust.js';

interface ServingCertificateOptions {
  readonly api: ApiServer;
  /** Where authority and certificate are kept for all replicas; it is made if it is not there. */
  readonly secret: ObjectName;
  /**
   * Names and addresses by which the server is reached:
   * `nvidia-virtual-webhook.nvidia-virtual.svc`.
   */
  readonly hosts: readonly string[];
  /** Who has to trust the certificate: their caBundle is kept right. */
  readonly holders: readonly CaBundleHolder[];
  readonly logger: Logger;
  /** Milliseconds between looks at the Secret and the holders. @default 10000 */
  readonly interval?: number;
}

/**
 * The certificate that an HTTPS server of ours serves with. It is made by whoever is first and
 * renewed weeks before it ends; the former authority stays trusted as long as it lives, and a new
 * one signs only after it was made known, so there is never a gap.
 *
 *     const certificate = new ServingCertificate({ api, secret, hosts, holders, logger });
 *     const server = createServer(handler);          // node:https, without key and cert
 *     await certificate.serve(server);               // with a certificate, renewed in time
 *     conditions: { certificate: certificate.condition }
 *     certificate.stop();
 */
export class ServingCertificate {
  readonly #options: ServingCertificateOptions;
  readonly #servers = new Set<Server>();
  #current: KeyPair | undefined;
  #problem: string | undefined = 'The certificate was not read yet.';
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: ServingCertificateOptions) {
    this.#options = options;
  }

  /**
   * Undefined when there is a certificate and all holders trust it; else what is missing, as a
   * sentence.
   */
  readonly condition = (): string | undefined => this.#problem;

  get current(): KeyPair | undefined {
    return this.#current;
  }

  /** Gives this server the certificate now, and each later one; returns when it has one. */
  async serve(server: Server): Promise<void> {
    this.#servers.add(server);
    if (this.#current) server.setSecureContext(contextOf(this.#current));
    if (this.#timer === undefined) await this.#untilThere();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #untilThere(): Promise<void> {
    await this.#look();
    while (this.#current === undefined && !this.#stopped) {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      await this.#look();
    }
    this.#schedule();
  }

  #schedule(): void {
    if (this.#stopped) return;
    // One that is not trusted yet keeps a pod from being ready: that is looked at more often.
    const { interval = 10_000 } = this.#options;
    this.#timer = setTimeout(
      () => void this.#look().then(() => this.#schedule()),
      this.#problem === undefined ? interval : 1000,
    );
  }

  async #look(): Promise<void> {
    const { api, secret, hosts, holders, logger } = this.#options;
    try {
      const { bundle, serving } = await keepKeyring(api, secret, hosts, new Date());
      for (const holder of holders) {
        if (await trust(api, holder, bundle))
          logger.info({ ...holder }, 'the caBundle was written');
      }
      this.#use(serving);
      this.#problem = undefined;
    } catch (error) {
      const sentence = (error as Error).message;
      if (sentence !== this.#problem)
        logger.warn({ reason: sentence }, 'the serving certificate is not ready');
      // One that is served and trusted goes on while the API server is away.
      this.#problem =
        this.#current === undefined || this.#problem !== undefined ? sentence : undefined;
    }
  }

  #use(serving: KeyPair): void {
    if (serving.certificate === this.#current?.certificate) return;
    const context = contextOf(serving);
    this.#current = serving;
    for (const server of this.#servers) server.setSecureContext(context);
    this.#options.logger.info('serving with a new certificate');
  }
}

/**
 * From now on, a later setSecureContext() of the server changes what it names and keeps the rest,
 * beginning with `first`: whom a server trusts and what it serves with are set apart from each
 * other. node:https replaces all of a context.
 */
export function keepContext(server: Server, first: SecureContextOptions = {}): void {
  let context = first;
  const replace = server.setSecureContext.bind(server);
  server.setSecureContext = (more) => {
    context = { ...context, ...more };
    replace(context);
  };
}

/**
 * As setSecureContext wants it; made once here, so that a pair that does not belong together is
 * refused before it is used.
 */
function contextOf({ certificate, key }: KeyPair): { cert: string; key: string } {
  createSecureContext({ cert: certificate, key });
  return { cert: certificate, key };
}
