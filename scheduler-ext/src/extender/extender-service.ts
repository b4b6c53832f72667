import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import type { V1Node, V1Pod, V1PodDisruptionBudget } from '@kubernetes/client-node';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { pagesOf } from '@nvidia-virtual/kube-common/list-pages';
import { DRAINED_ANNOTATION, INVENTORY_ANNOTATION } from '@nvidia-virtual/kube-common/names';
import { Reflector } from '@nvidia-virtual/kube-common/reflector';
import { Connections } from '@nvidia-virtual/service/connections';
import { HttpService } from '@nvidia-virtual/service/http';
import type { Logger } from 'pino';
import { Cluster } from '../cluster/cluster.js';
import { type PodRecord, type SeenPod, seePod } from '../cluster/pod.js';
import { jsonListener, listen, parseObject, type Route } from '../json-service.js';
import { Metrics } from '../metrics.js';
import type { ExtenderOptionValues } from '../options.js';
import { Judges } from '../placement/judges.js';
import { Binder } from './binder.js';
import { Eviction } from './eviction.js';
import { Extender } from './extender.js';
import { Groups } from './groups.js';
import { Leadership } from './leadership.js';
import { readExtenderArgs } from './messages.js';
import { Moves } from './moves.js';
import { Preemption } from './preemption.js';
import { Replacement } from './replacement.js';
import { Retry } from './retry.js';
import { Succession } from './succession.js';

interface SeenNode {
  readonly name: string;
  readonly inventory: string | undefined;
  /** UUIDs of its drained GPUs. */
  readonly drained: string | undefined;
}

/** Milliseconds for reading all disruption budgets. Tenants can make large ones. */
const BUDGETS_MS = 2000;

/** Everything that `extender` runs. */
export class ExtenderService {
  readonly cluster = new Cluster((node, claimed) => this.#retry.gained(node, claimed));
  readonly #metrics = new Metrics();
  readonly #api: ApiServer;
  readonly #nodes: Reflector<V1Node, SeenNode>;
  readonly #pods: Reflector<V1Pod, SeenPod>;
  readonly #groups: Groups;
  readonly #binder: Binder;
  readonly #eviction: Eviction;
  readonly #retry: Retry;
  readonly #replacement: Replacement | undefined;
  readonly #moves: Moves;
  readonly #server: Server;
  readonly #connections: Connections;
  readonly #http: HttpService;

  private constructor(options: ExtenderOptionValues, logger: Logger) {
    const { cluster } = this;
    const { strategy, slotCores, evictAfter } = options;
    this.#api = ApiServer.load(options.kubeconfig);
    const api = this.#api;
    this.#nodes = new Reflector({
      api,
      logger,
      path: '/api/v1/nodes',
      read: seeNode,
      reflection: reflectNodes(cluster),
    });
    this.#pods = new Reflector({
      api,
      logger,
      path: '/api/v1/pods',
      read: (pod) => seePod(pod, slotCores),
      reflection: reflectPods(cluster),
    });
    this.#groups = new Groups({ cluster, strategy });
    const groups = this.#groups;
    this.#binder = new Binder({ api, cluster, strategy, slotCores, logger, groups });
    const preemption = new Preemption({
      cluster,
      strategy,
      logger,
      budgets: () => listBudgets(api),
    });
    const condition = () => this.#nodes.condition() ?? this.#pods.condition();
    this.#eviction = new Eviction({ api, cluster, preemption, logger });
    const judges = new Judges(strategy);
    this.#retry = new Retry({ api, cluster, judges, logger });
    if (evictAfter !== undefined) {
      const afterMs = evictAfter / 1000;
      this.#replacement = new Replacement({ api, cluster, logger, condition, afterMs });
    }
    const leadership = new Leadership({ api, lease: options.lease, host: hostname() });
    this.#moves = new Moves({ api, cluster, leadership, condition, logger });
    const [binder, eviction, retry] = [this.#binder, this.#eviction, this.#retry];
    const extender = new Extender({
      cluster,
      judges,
      slotCores,
      binder,
      groups,
      preemption,
      eviction,
      retry,
      succession: new Succession(leadership),
      condition,
      logger,
    });
    const { answered } = this.#metrics;
    this.#server = createServer(jsonListener({ routes: routesOf(extender), logger, answered }));
    this.#connections = new Connections(this.#server);
    // kube-scheduler reuses connections. Closing an idle one could lose a request.
    this.#server.keepAliveTimeout = 0;
    this.#metrics.follow(cluster);
    const conditions = { nodes: this.#nodes.condition, pods: this.#pods.condition };
    const notes = { nodes: this.#nodes.lag, pods: this.#pods.lag };
    this.#http = new HttpService({ metrics: this.#metrics, conditions, notes, logger });
  }

  /**
   * Serves at once, but rejects requests until nodes and pods are listed. @throws SchedulerError
   */
  static async start(options: ExtenderOptionValues, logger: Logger): Promise<ExtenderService> {
    const service = new ExtenderService(options, logger);
    await listen(service.#server, options.listen);
    await service.#http.move(options.http);
    void service.#nodes.run();
    void service.#pods.run();
    logger.info(
      { listen: service.port, strategy: options.strategy, api: service.#api.address },
      'serving kube-scheduler',
    );
    return service;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Waits for requests in progress. */
  async end(): Promise<void> {
    this.#nodes.stop();
    this.#pods.stop();
    await this.#connections.end();
    this.#groups.stop();
    this.#binder.stop();
    this.#eviction.stop();
    this.#retry.stop();
    this.#replacement?.stop();
    this.#moves.stop();
    await this.#http.move(undefined);
    this.#api.close();
  }
}

function routesOf(extender: Extender): Record<string, Route> {
  return {
    '/filter': (body) => extender.filter(readExtenderArgs(body)),
    '/prioritize': (body) => extender.prioritize(readExtenderArgs(body)),
    '/bind': (body) => extender.bind(parseObject(body)),
    '/preempt': (body) => extender.preempt(parseObject(body)),
  };
}

function seeNode({ metadata }: V1Node): SeenNode {
  const { name = '', annotations = {} } = metadata ?? {};
  const [inventory, drained] = [annotations[INVENTORY_ANNOTATION], annotations[DRAINED_ANNOTATION]];
  return { name, inventory, drained };
}

function reflectNodes(cluster: Cluster) {
  return {
    replace: (nodes: readonly SeenNode[]) => cluster.replaceNodes(nodes),
    put: ({ name, inventory, drained }: SeenNode) => cluster.putNode(name, inventory, drained),
    remove: ({ name }: SeenNode) => cluster.removeNode(name),
  };
}

function reflectPods(cluster: Cluster) {
  const recordsOf = (pods: readonly SeenPod[]): PodRecord[] =>
    pods.flatMap(({ record }) => record ?? []);
  return {
    replace: (pods: readonly SeenPod[], since: number) =>
      cluster.replacePods(recordsOf(pods), since),
    put: ({ record }: SeenPod) => record && cluster.putPod(record),
    remove: ({ uid }: SeenPod) => cluster.removePod(uid),
  };
}

/** @throws Error if there are too many for the time in which kube-scheduler waits */
async function listBudgets(api: ApiServer): Promise<readonly V1PodDisruptionBudget[]> {
  const path = '/apis/policy/v1/poddisruptionbudgets';
  const end = performance.now() + BUDGETS_MS;
  const budgets: V1PodDisruptionBudget[] = [];
  for await (const { items = [] } of pagesOf<V1PodDisruptionBudget>(api, {
    path,
    timeout: BUDGETS_MS,
  })) {
    budgets.push(...items.map(neededOf));
    if (performance.now() > end) throw new Error(`${path} was not read in ${BUDGETS_MS} ms`);
  }
  return budgets;
}

/** Drops what a tenant can make large and nobody reads. */
function neededOf({ metadata, spec, status }: V1PodDisruptionBudget): V1PodDisruptionBudget {
  const { disruptionsAllowed = 0 } = status ?? {};
  return {
    metadata: { namespace: metadata?.namespace },
    spec: { selector: spec?.selector },
    status: { disruptionsAllowed } as V1PodDisruptionBudget['status'],
  } as V1PodDisruptionBudget;
}
