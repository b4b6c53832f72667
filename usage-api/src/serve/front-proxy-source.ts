import { EventEmitter } from 'node:events';
import type { V1ConfigMap } from '@kubernetes/client-node';
import type { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { Reflector } from '@nvidia-virtual/kube-common/reflector';
import type { Logger } from 'pino';
import { type FrontProxy, readFrontProxy } from './front-proxy.js';

const NAME = 'extension-apiserver-authentication';
const INCOMPLETE =
  `ConfigMap ` +
  `kube-system/${NAME} has no requestheader-client-ca-file. Start the Kubernetes API server ` +
  `with --requestheader-client-ca-file and --proxy-client-cert-file (the aggregation layer).`;

/** Watches the ConfigMap that says how the API server authenticates itself as front proxy. */
export class FrontProxySource extends EventEmitter<{ changed: [proxy: FrontProxy] }> {
  readonly #reflector: Reflector<V1ConfigMap, V1ConfigMap>;
  #current: FrontProxy | undefined;
  #problem: string | undefined;

  constructor(api: ApiServer, logger: Logger) {
    super();
    this.#reflector = new Reflector<V1ConfigMap, V1ConfigMap>({
      api,
      path: '/api/v1/namespaces/kube-system/configmaps',
      query: { fieldSelector: `metadata.name=${NAME}` },
      read: (map) => map,
      reflection: {
        replace: ([map]) => this.#take(map),
        put: (map) => this.#take(map),
        remove: () => this.#take(undefined),
      },
      logger,
    });
  }

  get current(): FrontProxy | undefined {
    return this.#current;
  }

  /** Why the API server cannot be authenticated, as a sentence; undefined if it can. */
  get problem(): string | undefined {
    return this.#reflector.condition() ?? this.#problem;
  }

  start(): void {
    void this.#reflector.run();
  }

  stop(): void {
    this.#reflector.stop();
  }

  #take(map: V1ConfigMap | undefined): void {
    try {
      this.#current = readFrontProxy(map?.data);
      this.#problem = this.#current ? undefined : INCOMPLETE;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      this.#current = undefined;
      this.#problem = `ConfigMap kube-system/${NAME} is invalid: ${error.message}.`;
    }
    if (this.#current) this.emit('changed', this.#current);
  }
}
