import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { GpuRecord } from '@nvidia-virtual/ledger';
import { type Address, forGpu } from '@nvidia-virtual/service/configuration/kinds';
import { HttpService } from '@nvidia-virtual/service/http';
import { Log, logUncaught } from '@nvidia-virtual/service/log';
import { Registry } from 'prom-client';
import type { Granted } from './admin/convert.js';
import { AdminServer } from './admin/server.js';
import { allowHugePages } from './arenas/huge-pages.js';
import type { Configuration } from './configuration/schema.js';
import type { ConfigurationStore } from './configuration/store.js';
import { GpuArrivals } from './gpus/arrivals.js';
import type { Backend } from './gpus/backend.js';
import { GpuHealth } from './gpus/health.js';
import { listGpus } from './gpus/inventory.js';
import { GpuProbe } from './gpus/probe.js';
import { Addon } from './host/addon.js';
import { locateInstallation } from './host/installation.js';
import { StateDirectory } from './host/state-directory.js';
import type { Metrics } from './metrics/metrics.js';
import { metricsOf } from './metrics/node-metrics.js';
import { GpuNode } from './node.js';
import type { NodeLedger } from './node-ledger.js';
import {
  describeSelection,
  type NodeMachine,
  prepareMachine,
  slotSettingsOf,
  slotSizeOf,
  takeNodeInventory,
  warnOfUnknownGpus,
} from './node-machine.js';
import type { NodeSettings } from './node-types.js';
import type { KubernetesNode } from './pods/service.js';
import { checkHostMemory, hostMemoryOfSlots } from './pods/slots.js';

const NOT_YET = 'The GPUs of this machine are being listed.';

/**
 * All that `gpu-proxy serve` runs for a node: the node itself, its admin API, its ledger, metrics
 * and health, its log, and the reload.
 */
export class NodeService {
  readonly #store: ConfigurationStore;
  readonly #log: Log;
  readonly #http: HttpService;
  readonly #stopReloading: () => void;
  #noteArrival = () => {};
  /** Resolves when further GPUs are detected: gpu-proxy must restart. */
  readonly gpusArrived = new Promise<undefined>((resolve) => {
    this.#noteArrival = () => resolve(undefined);
  });
  #served: Address | undefined;
  #state: StateDirectory | undefined;
  #node: GpuNode | undefined;
  #admin: AdminServer | undefined;
  #kubernetes: KubernetesNode | undefined;
  #ledger: NodeLedger | undefined;
  #metrics: Metrics | undefined;

  private constructor(store: ConfigurationStore) {
    this.#store = store;
    this.#log = new Log(logOptions(store.current));
    logUncaught(this.#log.logger);
    this.#http = this.#makeHttp();
    this.#stopReloading = store.reloadOnHangup(this.#log.logger);
    store.on('reloaded', () => void this.#follow());
  }

  /** @throws ProxyError, LedgerError; nothing is left running then. */
  static async start(store: ConfigurationStore): Promise<NodeService> {
    const service = new NodeService(store);
    try {
      await service.#start();
      return service;
    } catch (error) {
      await service.#leave();
      throw error;
    }
  }

  /**
   * Stops the service. Programs continue, and the next gpu-proxy on the state directory takes over.
   * @param signal the signal that requested it, if any
   */
  async end(signal: NodeJS.Signals | undefined): Promise<void> {
    const sessions = this.#node?.allocations.reduce(
      (sum, allocation) => sum + allocation.sessionCount,
      0,
    );
    await this.#leave();
    this.#log.logger.info(
      { signal, sessions },
      'ended: programs go on, and the next gpu-proxy on this state directory finds them',
    );
  }

  async #start(): Promise<void> {
    const { current } = this.#store;
    const { logger } = this.#log;
    const state = StateDirectory.open(current.state, new Addon(locateInstallation().addon));
    this.#state = state;
    const machine = await prepareMachine(current, state, logger);
    const { installation, launcher, backend } = machine;
    if (current.hugePages) allowHugePages(launcher, logger);
    await this.#moveHttp();
    const gpus = await takeNodeInventory(machine, this.#store.current);
    warnOfUnknownGpus(gpus, this.#store.current, logger);
    this.#kubernetes = await this.#makeKubernetes(machine, gpus);
    const kubernetes = this.#kubernetes;
    const node = await GpuNode.start({
      ...{ installation, launcher, backend, logger, state, gpus, arbitrated: true },
      name: current.node,
      settings: settingsOf(this.#store.current, gpus),
      whyNotAllowed:
        kubernetes &&
        ((specification, connection) => kubernetes.whyNotAllowed(specification, connection)),
      observe: (made) => {
        kubernetes?.observe(made);
        this.#metrics = metricsOf(made, {
          ledgerConnected: () => current.ledger.url === undefined || !!this.#ledger?.connected,
          podsFollowed: () => kubernetes && kubernetes.pods.trouble === undefined,
        });
      },
    });
    this.#node = node;
    if (kubernetes) checkHostMemory(gpus, slotSettingsOf(current), node.arenas.limit);
    // The configuration may have been reloaded meanwhile.
    this.#attempt(() => this.#followSettings());
    const { url } = current.ledger;
    if (url !== undefined) {
      const ledger = { ...current.ledger, url };
      // Loaded on demand: most commands and some nodes have no use for the client of Redis.
      const { NodeLedger } = await import('./node-ledger.js');
      this.#ledger = new NodeLedger({
        ...{ node, backend, logger, ledger },
        stateDirectory: state.directory,
      });
    }
    kubernetes?.start(node, state);
    this.#admin = await AdminServer.start(node, state.adminSocket, this.#granted(backend));
    const served = {
      node: node.name,
      state: state.directory,
      backend: backend.kind,
      driver: backend.driver,
      http: this.#http.address,
    };
    logger.info({ ...served, gpus }, 'serving');
  }

  /** @throws ProxyError KUBECONFIG_MISSING, KUBECONFIG_UNREADABLE */
  async #makeKubernetes(
    machine: NodeMachine,
    gpus: readonly GpuRecord[],
  ): Promise<KubernetesNode | undefined> {
    const { kubernetes, node = hostname() } = this.#store.current;
    if (!kubernetes.enabled) return undefined;
    // Loaded on demand: the Kubernetes client loads slower than everything else.
    const { KubernetesNode } = await import('./pods/service.js');
    const addon = new Addon(machine.installation.addon);
    const { kubeletRoot, patience } = kubernetes;
    return new KubernetesNode({
      ...{ nodeName: node, kubeletRoot, patienceMs: patience / 1000 },
      slotSize: slotSizeOf(this.#store.current),
      ...{ addon, installation: machine.installation, logger: this.#log.logger },
      health: this.#makeHealth(machine, gpus, addon),
    });
  }

  #makeHealth(machine: NodeMachine, gpus: readonly GpuRecord[], addon: Addon): GpuHealth {
    const { logger } = this.#log;
    const { installation, launcher, backend } = machine;
    const { gpu: selection = [], kubernetes } = this.#store.current;
    const probe = new GpuProbe({
      executable: installation.worker,
      backend,
      addon,
      launcher,
      logger,
    });
    return new GpuHealth({
      ...{ gpus, logger, everyMs: kubernetes.healthInterval / 1000 },
      listed: async () => new Set(await listGpus(machine)),
      arrivals: new GpuArrivals({
        ...{ gpus, selection, logger },
        survey: () => takeNodeInventory(machine, this.#store.current),
        arrived: () => this.#noteArrival(),
      }),
      whyNoWorker: (gpu) => probe.whyNoWorker(gpu),
    });
  }

  /** Data of the admin API that does not come from the node. */
  #granted(backend: Backend): Granted {
    const { current } = this.#store;
    return {
      selection: describeSelection(backend, current),
      slotSize: current.kubernetes.enabled ? slotSizeOf(current) : undefined,
      grants: () => this.#kubernetes?.grants ?? [],
      arrivals: () => this.#kubernetes?.arrivals ?? [],
      placed: () => this.#kubernetes?.placed ?? [],
      unhealthy: (gpu) => this.#kubernetes?.health.reason(gpu),
    };
  }

  /** Applies a reloaded configuration. On error, logs it and keeps the former settings. */
  async #follow(): Promise<void> {
    const { current } = this.#store;
    this.#attempt(() => this.#log.reopen(logOptions(current)));
    this.#attempt(() => this.#followSettings());
    await this.#moveHttp().catch((error: Error) => this.#log.logger.error(error.message));
  }

  /** @throws ProxyError WARM_WORKERS_NOT_LEFT, OVERSUBSCRIPTION_HOST */
  #followSettings(): void {
    if (!this.#node) return;
    const { current } = this.#store;
    const { gpus, arenas } = this.#node;
    if (this.#kubernetes)
      checkHostMemory(gpus, slotSettingsOf(current), arenas.limitOf(current.hostMemory));
    this.#node.settings = settingsOf(current, gpus);
  }

  #attempt(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#log.logger.error((error as Error).message);
    }
  }

  async #moveHttp(): Promise<void> {
    const { http } = this.#store.current;
    if (isDeepStrictEqual(http, this.#served)) return;
    await this.#http.move(http);
    this.#served = http;
  }

  #makeHttp(): HttpService {
    return new HttpService({
      metrics: {
        contentType: Registry.PROMETHEUS_CONTENT_TYPE,
        exposition: async () => {
          // Before takeover, existing allocations would look removed.
          if (!this.#metrics || !this.#node) throw new Error(NOT_YET);
          return this.#metrics.exposition();
        },
      },
      conditions: {
        inventory: () => (this.#node ? undefined : NOT_YET),
        sockets: () => this.#whyNoSockets(),
        arbiter: () =>
          this.#node?.arbiterConnected
            ? undefined
            : 'The arbiter of GPU time does not answer: it is being started.',
        mps: () => this.#node?.mpsTrouble,
      },
      notes: {
        ledger: () => this.#ledger?.trouble,
        kubernetes: () => this.#kubernetes?.pods.trouble,
      },
      logger: this.#log.logger,
    });
  }

  #whyNoSockets(): string | undefined {
    if (!this.#admin) return 'The admin API is not served yet.';
    const deaf = this.#node?.allocations.filter(({ listening }) => !listening) ?? [];
    return deaf.length === 0
      ? undefined
      : `Programs cannot connect to ${deaf.map(({ id }) => id).join(', ')}: the log says why.`;
  }

  /** Closes the ledger first, so that it does not see the node without allocations. */
  async #leave(): Promise<void> {
    this.#stopReloading();
    this.#admin?.close();
    await this.#ledger?.close();
    await this.#http.move(undefined);
    this.#kubernetes?.leave();
    this.#node?.leave();
    this.#metrics?.leave();
    this.#state?.release();
  }
}

function logOptions({ log = '-', logLevel }: Configuration) {
  return { file: log, level: logLevel };
}

function settingsOf(configuration: Configuration, gpus: readonly GpuRecord[]): NodeSettings {
  const { limits, window, overrunLimit, guaranteedShare, hostMemory, kubernetes } = configuration;
  const { movable, managedMemory, warmWorkers, oversubscription, workerUids } = configuration;
  return {
    ...{ limits, window, overrunLimit, guaranteedShare, hostMemory },
    slotsHostMemory: kubernetes.enabled
      ? hostMemoryOfSlots(gpus, slotSettingsOf(configuration))
      : 0,
    movable,
    movesManaged: managedMemory === 'moves',
    users: workerUids,
    warmWorkers: (gpu) => forGpu(warmWorkers, gpu, 0),
    oversubscription: (gpu) => forGpu(oversubscription, gpu, 1),
  };
}
