import { X509Certificate } from 'node:crypto';
import type { Server } from 'node:https';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Logger } from 'pino';
import type { ApiServer } from './api-server.js';
import type { KeyPair } from './certificates/authority.js';
import { readKeyPair } from './certificates/directory.js';
import { keepKeyring, type ObjectName } from './certificates/secret.js';
import { type CaBundleHolder, trust } from './certificates/trust.js';

export type { KeyPair } from './certificates/authority.js';
export type { ObjectName } from './certificates/secret.js';
export type { CaBundleHolder } from './certificates/trust.js';

/** A certificate that the replicas create and renew. */
interface OwnCertificate {
  readonly api: ApiServer;
  /** Secret for the CA and the certificate of all replicas. Created if missing. */
  readonly secret: ObjectName;
  /**
   * Host names and addresses of the server, such as `nvidia-virtual-webhook.nvidia-virtual.svc`.
   */
  readonly hosts: readonly string[];
  /** Objects whose caBundle must contain the CA. It is kept up to date. */
  readonly holders: readonly CaBundleHolder[];
}

interface ServingCertificateOptions {
  readonly own: OwnCertificate;
  /**
   * Directory with `tls.crt` and `tls.key`, which another program such as cert-manager renews.
   * With it, `own` is not used: no Secret is read, and no caBundle is written.
   */
  readonly directory?: string | undefined;
  readonly logger: Logger;
  /** Milliseconds between checks of the Secret and the holders, or the files. @default 10000 */
  readonly interval?: number;
}

/**
 * The certificate of an HTTPS server. The first replica creates it, and replicas renew it weeks
 * before it expires. The former CA stays trusted until it expires, and a new CA is published
 * before it signs, so clients trust the certificate at all times.
 *
 *     const certificate = new ServingCertificate({ own: { api, secret, hosts, holders }, logger });
 *     const server = createServer(handler);          // node:https, without key and cert
 *     await certificate.serve(server);               // with a certificate, renewed in time
 *     conditions: { certificate: certificate.condition }
 *     certificate.stop();
 */
export class ServingCertificate {
  readonly #options: ServingCertificateOptions;
  readonly #servers = new Set<Server>();
  #current: KeyPair | undefined;
  #problem: string | undefined = 'The certificate has not been read yet.';
  /** Why the last renewal failed; undefined: it did not. */
  #notRenewed: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: ServingCertificateOptions) {
    this.#options = options;
  }

  /**
   * Undefined if there is a certificate that all holders trust; otherwise the reason as a
   * sentence.
   */
  readonly condition = (): string | undefined => this.#problem;

  get current(): KeyPair | undefined {
    return this.#current;
  }

  /** Unix time in seconds; undefined without a certificate. */
  get expiry(): number | undefined {
    return (
      this.#current && Date.parse(new X509Certificate(this.#current.certificate).validTo) / 1000
    );
  }

  /** Sets this and every later certificate on the server. Resolves with the first one. */
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
    // Check more often while the pod is not ready.
    const { interval = 10_000 } = this.#options;
    this.#timer = setTimeout(
      () => void this.#look().then(() => this.#schedule()),
      this.#problem === undefined ? interval : 1000,
    );
  }

  async #look(): Promise<void> {
    const { directory, logger } = this.#options;
    try {
      this.#use(directory === undefined ? await this.#keepOwn() : readKeyPair(directory));
      this.#problem = undefined;
    } catch (error) {
      const sentence = (error as Error).message;
      if (sentence !== this.#problem)
        logger.warn({ reason: sentence }, 'the serving certificate is not ready');
      // A trusted certificate stays valid while the API server or the files are unreadable.
      this.#problem =
        this.#current === undefined || this.#problem !== undefined ? sentence : undefined;
    }
  }

  async #keepOwn(): Promise<KeyPair> {
    const { own, logger } = this.#options;
    const { api, secret, hosts, holders } = own;
    let failure: string | undefined;
    const { bundle, serving } = await keepKeyring(api, secret, hosts, new Date(), (error) => {
      failure = error.message;
    });
    this.#noteRenewal(failure);
    for (const holder of holders) {
      if (await trust(api, holder, bundle)) logger.info({ ...holder }, 'updated the caBundle');
    }
    return serving;
  }

  /** Logs a failure once. The certificate is valid for weeks, and a metric says until when. */
  #noteRenewal(failure: string | undefined): void {
    if (failure !== undefined && failure !== this.#notRenewed)
      this.#options.logger.error({ reason: failure }, 'the serving certificate cannot be renewed');
    this.#notRenewed = failure;
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
 * Makes setSecureContext() of the server merge its options into the former ones, starting with
 * `first`. node:https would replace all of them, but the client CA and the certificate are set
 * separately.
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
 * Options for setSecureContext(). Creates a context once to reject a key that does not match the
 * certificate.
 */
function contextOf({ certificate, key }: KeyPair): { cert: string; key: string } {
  createSecureContext({ cert: certificate, key });
  return { cert: certificate, key };
}
