import { setTimeout as sleep } from 'node:timers/promises';
import type { V1Node, V1Pod } from '@kubernetes/client-node';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { ServingCertificate } from '@nvidia-virtual/kube-common/certificates';
import { Reflector } from '@nvidia-virtual/kube-common/reflector';
import { RedisLedger } from '@nvidia-virtual/ledger';
import { DRAIN_DELAY } from '@nvidia-virtual/service/connections';
import { HttpService } from '@nvidia-virtual/service/http';
import type { Logger } from 'pino';
import { UsageError } from './errors.js';
import { Metrics } from './metrics.js';
import type { Options } from './options.js';
import { GROUP, VERSION } from './resources.js';
import { Access } from './serve/access.js';
import { FrontProxySource } from './serve/front-proxy-source.js';
import { Handler } from './serve/handler.js';
import { UsageServer } from './serve/server.js';
import { Board } from './usage/board.js';
import { Figures } from './usage/figures.js';
import { Mirror, mirrored } from './usage/mirror.js';
import { type GpuNode, keepNode } from './usage/node-usage.js';
import { type GpuPod, keepPod } from './usage/pods.js';

const MICROSECONDS = 1000;

/** Wires up and runs all parts of the process. */
export class UsageService {
  readonly #options: Options;
  readonly #logger: Logger;
  readonly #api: ApiServer;
  readonly #ledger: RedisLedger;
  readonly #board: Board;
  readonly #reflectors: readonly Reflector<never, never>[];
  readonly #frontProxy: FrontProxySource;
  readonly #server: UsageServer;
  readonly #certificate: ServingCertificate;
  readonly #http: HttpService;
  #ending = false;

  /** @throws LedgerError, ApiError for unusable options */
  constructor(options: Options, logger: Logger) {
    this.#options = options;
    this.#logger = logger;
    this.#api = ApiServer.load(options.kubeconfig);
    this.#ledger = openLedger(options.ledger);
    this.#ledger.on('state', (state, sentence) =>
      logger[state === 'away' ? 'warn' : 'info'](sentence),
    );
    this.#ledger.on('broken', ({ message }) => logger.warn(message));
    const [pods, nodes] = [new Mirror<GpuPod>(), new Mirror<GpuNode>()];
    const common = { api: this.#api, logger };
    const ofPods = new Reflector({
      ...common,
      path: '/api/v1/pods',
      read: mirrored<V1Pod, GpuPod>(keepPod),
      reflection: pods,
    });
    const ofNodes = new Reflector({
      ...common,
      path: '/api/v1/nodes',
      read: mirrored<V1Node, GpuNode>(keepNode),
      reflection: nodes,
    });
    this.#reflectors = [ofPods, ofNodes] as unknown as readonly Reflector<never, never>[];
    const figures = new Figures({
      ledger: this.#ledger,
      maximumAge: options.ledger.maximumAge / MICROSECONDS,
    });
    const { interval, restingInterval } = options;
    this.#board = new Board({
      pods,
      nodes,
      figures,
      interval: interval / MICROSECONDS,
      restingInterval: restingInterval / MICROSECONDS,
    });
    this.#frontProxy = new FrontProxySource(this.#api, logger);
    const handler = new Handler({
      board: this.#board,
      access: new Access(this.#api),
      frontProxy: () => this.#frontProxy.current,
    });
    const metrics = new Metrics({
      watches: () => handler.watches,
      pods: () => pods.items.size,
      nodes: () => nodes.items.size,
      ledgerTrouble: () => figures.trouble !== undefined,
      certificateExpiry: () => this.#certificate.expiry,
    });
    this.#server = new UsageServer({ handler, logger, metrics });
    this.#certificate = new ServingCertificate(this.#certificateOptions());
    this.#http = new HttpService({
      metrics,
      logger,
      conditions: {
        pods: ofPods.condition,
        nodes: ofNodes.condition,
        certificate: this.#certificate.condition,
        frontProxy: () => this.#frontProxy.problem,
        end: () => (this.#ending ? 'The usage API is shutting down.' : undefined),
      },
      notes: { ledger: () => figures.trouble?.message, pods: ofPods.lag, nodes: ofNodes.lag },
    });
  }

  /**
   * Resolves when it serves with a certificate. @throws UsageError ADDRESS_NOT_SERVED, ProxyError
   */
  async start(): Promise<void> {
    const { listen, http } = this.#options;
    if ('path' in listen)
      throw new UsageError('ADDRESS_NOT_SERVED', {
        address: listen.path,
        reason: 'it is not a HOST:PORT',
      });
    await this.#http.move(http);
    const port = await this.#server.listen(listen);
    for (const reflector of this.#reflectors) void reflector.run();
    this.#frontProxy.on('changed', (proxy) => this.#server.trust(proxy.authority));
    this.#frontProxy.start();
    await this.#certificate.serve(this.#server.server);
    this.#logger.info({ port, http: this.#http.address }, 'serving');
  }

  /**
   * Becomes not ready, keeps serving until the endpoints are updated, then stops. Watches continue
   * at another replica.
   */
  async stop(): Promise<void> {
    this.#ending = true;
    await sleep(DRAIN_DELAY);
    await this.#server.close();
    this.#certificate.stop();
    this.#frontProxy.stop();
    for (const reflector of this.#reflectors) reflector.stop();
    this.#board.close();
    await this.#http.move(undefined);
    await this.#ledger.close();
    this.#api.close();
  }

  #certificateOptions(): ConstructorParameters<typeof ServingCertificate>[0] {
    const { namespace, service, secret, certificateDirectory } = this.#options;
    const own = {
      api: this.#api,
      secret: { namespace, name: secret },
      hosts: [`${service}.${namespace}.svc`, `${service}.${namespace}.svc.cluster.local`],
      holders: [{ kind: 'APIService', name: `${VERSION}.${GROUP}` }] as const,
    };
    return { own, directory: certificateDirectory, logger: this.#logger };
  }
}

function openLedger({ url, username, passwordFile, tls }: Options['ledger']): RedisLedger {
  const files = { caFile: tls.ca, certificateFile: tls.cert, keyFile: tls.key };
  return new RedisLedger({ redis: { url, username, passwordFile, ...files } });
}
