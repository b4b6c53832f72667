import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { ServingCertificate } from '@nvidia-virtual/kube-common/certificates';
import { Connections, DRAIN_DELAY } from '@nvidia-virtual/service/connections';
import { HttpService } from '@nvidia-virtual/service/http';
import type { Logger } from 'pino';
import { jsonListener, listen, parseObject, type Route } from '../json-service.js';
import { Metrics } from '../metrics.js';
import type { WebhookOptionValues } from '../options.js';
import { webhookServer } from './server.js';
import type { Writers } from './validation.js';
import { Webhook } from './webhook.js';

/**
 * The API server closes idle connections after 90 s. Closing one earlier could lose its next
 * request, and the API server would refuse a pod.
 */
const LONGEST_IDLE = 120_000;

/** Everything that `webhook` runs. */
export class WebhookService {
  readonly #api: ApiServer;
  readonly #server: Server;
  readonly #connections: Connections;
  readonly #http: HttpService;
  readonly #certificate: ServingCertificate;
  #ending = false;

  private constructor(options: WebhookOptionValues, logger: Logger) {
    const { namespace, release, slotMemory, slotCores, slotsPerGpu, translate = [] } = options;
    const slotSize =
      slotMemory === undefined ? undefined : { memory: slotMemory, cores: slotCores };
    const name = `${release}-webhook`;
    const webhook = new Webhook(
      writersOf(options),
      { dialects: translate, slotSize, slotsPerGpu },
      logger,
    );
    const metrics = new Metrics();
    const routes: Record<string, Route> = {
      '/mutate': (body) => webhook.mutate(parseObject(body)),
      '/validate': (body) => webhook.validate(parseObject(body)),
    };
    this.#api = ApiServer.load(options.kubeconfig);
    this.#server = webhookServer(
      options.clientAuthority,
      jsonListener({ routes, logger, answered: metrics.answered }),
    );
    this.#connections = new Connections(this.#server);
    this.#server.keepAliveTimeout = LONGEST_IDLE;
    this.#certificate = new ServingCertificate({
      own: {
        api: this.#api,
        secret: { namespace, name },
        hosts: options.host ?? [`${name}.${namespace}.svc`, `${name}.${namespace}`, name],
        holders: [
          { kind: 'MutatingWebhookConfiguration', name: release },
          { kind: 'ValidatingWebhookConfiguration', name: release },
        ],
      },
      directory: options.certificateDirectory,
      logger,
    });
    metrics.followCertificate(() => this.#certificate.expiry);
    const end = () => (this.#ending ? 'The webhook ends.' : undefined);
    this.#http = new HttpService({
      metrics,
      conditions: { certificate: this.#certificate.condition, end },
      logger,
    });
  }

  /**
   * Serves as soon as it has a certificate; until then it is not ready and reports the reason.
   * @throws SchedulerError
   */
  static async start(options: WebhookOptionValues, logger: Logger): Promise<WebhookService> {
    const service = new WebhookService(options, logger);
    await service.#http.move(options.http);
    await listen(service.#server, options.listen);
    logger.info({ listen: service.port, api: service.#api.address }, 'serving the API server');
    void service.#certificate.serve(service.#server);
    return service;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async end(): Promise<void> {
    this.#ending = true;
    await sleep(DRAIN_DELAY);
    this.#certificate.stop();
    await this.#connections.end();
    await this.#http.move(undefined);
    this.#api.close();
  }
}

export function writersOf({
  namespace,
  release,
}: Pick<WebhookOptionValues, 'namespace' | 'release'>): Writers {
  const account = (name: string) => `system:serviceaccount:${namespace}:${release}-${name}`;
  return { scheduler: account('scheduler'), plugin: account('node') };
}
