import { hostname } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { GpuRecord } from '@nvidia-virtual/ledger';
import { Registry } from 'prom-client';
import { Addon } from './addon.js';
import type { Granted } from './admin/convert.js';
import { AdminServer } from './admin/server.js';
import { type Backend, chooseBackend, hostMachine } from './backend.js';
import { type Address, forGpu } from './configuration/kinds.js';
import type { Configuration } from './configuration/schema.js';
import type { ConfigurationStore } from './configuration/store.js';
import { DeviceMemory } from './device-memory.js';
import { linkDriver } from './driver-libraries.js';
import { ProxyError } from './errors.js';
import { GpuArrivals } from './gpu-arrivals.js';
import { GpuHealth } from './gpu-health.js';
import { GpuProbe } from './gpu-probe.js';
import { findHostNamespaces } from './host-namespaces.js';
import { HttpService } from './http.js';
import { type Installation, installOnHost, locateInstallation } from './installation.js';
import { listGpus, takeInventory } from './inventory.js';
import type { KubernetesNode } from './kubernetes/service.js';
import { checkSlots } from './kubernetes/slots.js';
import { DIRECT, HostLauncher, type Launcher } from './launcher.js';
import { Log, logUncaught } from './log.js';
import type { Metrics } from './metrics/metrics.js';
import { MetricsFile } from './metrics/metrics-file.js';
import { GpuNode, type NodeSettings } from './node.js';
import { NodeLedger } from './node-ledger.js';
import { metricsOf } from './node-metrics.js';
import { StateDirectory } from './state-directory.js';

/** What a node is made of, once its GPUs are known. */
interface NodeParts {
  readonly installation: Installation;
  readonly launcher: Launcher;
  readonly backend: Backend;
  readonly gpus: readonly GpuRecord[];
}

const NOT_YET = 'The GPUs of this machine are being listed.';

/** All that `gpu-proxy serve` runs for a node: the node itself, its admin API, its ledger, metrics and health, its log, and the reload. */
export class NodeService {
  readonly #store: ConfigurationStore;
  readonly #log: Log;
  readonly #http: HttpService;
  readonly #stopReloading: () => void;
  #noteArrival = () => {};
  /** GPUs are there that were not when it started: it is to be started anew. */
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
   * Programs go on, and the next gpu-proxy on the state directory finds them.
   * @param signal that asked for it, if one did.
   */
  async end(signal: NodeJS.Signals | undefined): Promise<void> {
    const sessions = this.#node?.allocations.reduce((sum, allocation) => sum + allocation.sessionCount, 0);
    await this.#leave();
    this.#log.logger.info({ signal, sessions }, 'ended: programs go on, and the next gpu-proxy on this state directory finds them');
  }

  async #start(): Promise<void> {
    const { current } = this.#store;
    const { logger } = this.#log;
    const state = StateDirectory.open(current.state);
    this.#state = state;
    const { installation, backend, launcher } = await this.#prepare(state);
    await this.#moveHttp();
    const gpus = await this.#survey({ installation, backend, launcher });
    this.#warnOfUnknownGpus(gpus);
    this.#kubernetes = await this.#makeKubernetes({ installation, launcher, backend, gpus });
    const kubernetes = this.#kubernetes;
    const node = await GpuNode.start({
      ...{ installation, launcher, backend, logger, state, gpus, arbitrated: true },
      name: current.node,
      settings: settingsOf(this.#store.current),
      whyNotAllowed: kubernetes && ((specification, connection) => kubernetes.whyNotAllowed(specification, connection)),
      observe: (made) => {
        kubernetes?.observe(made);
        this.#metrics = metricsOf(made, {
          deviceMemory: new DeviceMemory({ installation, backend, launcher, logger }),
          file: new MetricsFile(state.metrics, logger),
          ledgerConnected: () => this.#ledger?.connected ?? false,
          podsFollowed: () => kubernetes && kubernetes.pods.trouble === undefined,
        });
      },
    });
    this.#node = node;
    // It may have been read again meanwhile.
    this.#attempt(() => this.#followSettings());
    this.#ledger = new NodeLedger({ node, backend, stateDirectory: state.directory, ledger: current.ledger, logger });
    kubernetes?.start(node, state);
    this.#admin = await AdminServer.start(node, state.adminSocket, this.#granted(backend));
    const served = { node: node.name, state: state.directory, backend: backend.kind, driver: backend.driver, http: this.#http.address };
    logger.info({ ...served, gpus }, 'serving');
  }

  /** The GPUs that a node has which starts now. @throws ProxyError INVENTORY_FAILED, SLOT_MEMORY_SMALL */
  async #survey(machine: Omit<NodeParts, 'gpus'>): Promise<GpuRecord[]> {
    const { gpu: selection = [], gpuMode, kubernetes, slotsPerGpu, warmWorkers } = this.#store.current;
    const gpus = await takeInventory({ ...machine, gpus: selection, mode: (gpu) => forGpu(gpuMode, gpu, 'exclusive') });
    if (kubernetes.enabled === 'true') checkSlots(gpus, { slotsPerGpu, warmWorkers: (gpu) => forGpu(warmWorkers, gpu, 0) });
    return gpus;
  }

  /** What workers are started from, and how. @throws ProxyError BUILD_MISSING, VERSION_MISSING, HOST_NOT_REACHED, BACKEND_NOT_REAL */
  async #prepare({ driver }: StateDirectory): Promise<Omit<NodeParts, 'gpus'>> {
    const { backend: choice, kubernetes } = this.#store.current;
    const { enabled, placement, versions, kubeletRoot, driverRoot } = kubernetes;
    const built = locateInstallation();
    if (enabled === 'false' || placement === 'none')
      return { installation: built, backend: chooseBackend(choice, built), launcher: DIRECT };
    const installation = installOnHost(built, versions);
    const namespaces = await findHostNamespaces(new Addon(built.addon), kubeletRoot);
    const backend = chooseBackend(choice, installation, hostMachine(namespaces.root, driverRoot));
    const libraries = linkDriver(backend, driver, namespaces.root);
    const { devices } = backend;
    const launcher = new HostLauncher({ executable: built.launcher, namespaces, libraries, devices, logger: this.#log.logger });
    return { installation, backend, launcher };
  }

  /** @throws ProxyError KUBECONFIG_MISSING */
  async #makeKubernetes(parts: NodeParts): Promise<KubernetesNode | undefined> {
    const { kubernetes, node = hostname(), slotsPerGpu } = this.#store.current;
    if (kubernetes.enabled === 'false') return undefined;
    // Kubernetes' client takes longer to load than all else that a node needs.
    const { KubernetesNode } = await import('./kubernetes/service.js');
    const addon = new Addon(parts.installation.addon);
    const { kubeletRoot, patience } = kubernetes;
    return new KubernetesNode({
      ...{ nodeName: node, kubeletRoot, slotsPerGpu, patienceMs: patience / 1000 },
      ...{ addon, logger: this.#log.logger },
      health: this.#makeHealth(parts, addon, kubernetes.healthInterval / 1000),
    });
  }

  #makeHealth({ gpus, ...machine }: NodeParts, addon: Addon, everyMs: number): GpuHealth {
    const { logger } = this.#log;
    const { installation, launcher, backend } = machine;
    const selection = this.#store.current.gpu ?? [];
    const probe = new GpuProbe({ executable: installation.worker, driver: backend.driver, addon, launcher, logger });
    return new GpuHealth({
      ...{ gpus, logger, everyMs },
      listed: async () => new Set(await listGpus(machine)),
      arrivals: new GpuArrivals({
        ...{ gpus, selection, logger },
        survey: () => this.#survey(machine),
        arrived: () => this.#noteArrival(),
      }),
      whyNoWorker: (gpu) => probe.whyNoWorker(gpu),
    });
  }

  /** What the admin API tells beside what the node itself knows. */
  #granted({ kind }: Backend): Granted {
    const { slotsPerGpu, kubernetes, gpu = [] } = this.#store.current;
    return {
      selection: [kind, ...simulatedGpus(kind), ...gpu].join(' '),
      slotsPerGpu: kubernetes.enabled === 'true' ? slotsPerGpu : 0,
      grants: () => this.#kubernetes?.grants ?? [],
      unhealthy: (gpu) => this.#kubernetes?.health.reason(gpu),
    };
  }

  /** One file may be for several nodes, so this is no refusal. */
  #warnOfUnknownGpus(gpus: readonly GpuRecord[]): void {
    const { gpu: selection = [], gpuMode, warmWorkers } = this.#store.current;
    const known = new Set(gpus.flatMap(({ uuid, index }) => [uuid.toLowerCase(), String(index)]));
    const list = gpus.map(({ index, uuid }) => `${index} (${uuid})`).join(', ');
    // Indices count the GPUs of the machine there, and those of the node here.
    const uuids = selection.filter((name) => !/^\d+$/.test(name)).map((name) => name.toLowerCase());
    for (const [key, names] of Object.entries({ gpu: uuids, gpuMode: gpuMode.some.keys(), warmWorkers: warmWorkers.some.keys() }))
      for (const name of names)
        if (!known.has(name)) this.#log.logger.warn({ key }, new ProxyError('GPU_UNKNOWN', { name, gpus: list }).message);
  }

  /** Takes up what was read again. What cannot be taken up is said, and the former stays. */
  async #follow(): Promise<void> {
    const { current } = this.#store;
    this.#attempt(() => this.#log.reopen(logOptions(current)));
    this.#attempt(() => this.#followSettings());
    await this.#moveHttp().catch((error: Error) => this.#log.logger.error(error.message));
  }

  /** @throws ProxyError WARM_WORKERS_NOT_LEFT */
  #followSettings(): void {
    if (this.#node) this.#node.settings = settingsOf(this.#store.current);
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
          // Allocations that are not found again yet would be taken for removed ones.
          if (!this.#metrics || !this.#node) throw new Error(NOT_YET);
          return this.#metrics.exposition();
        },
      },
      conditions: {
        inventory: () => (this.#node ? undefined : NOT_YET),
        sockets: () => this.#whyNoSockets(),
        arbiter: () => (this.#node?.arbiterConnected ? undefined : 'The arbiter of GPU time does not answer: it is being started.'),
        mps: () => this.#node?.mpsTrouble,
      },
      notes: { ledger: () => this.#ledger?.trouble, kubernetes: () => this.#kubernetes?.pods.trouble },
      logger: this.#log.logger,
    });
  }

  #whyNoSockets(): string | undefined {
    if (!this.#admin) return 'The admin API is not served yet.';
    const deaf = this.#node?.allocations.filter(({ listening }) => !listening) ?? [];
    return deaf.length === 0 ? undefined : `Programs cannot connect to ${deaf.map(({ id }) => id).join(', ')}: the log says why.`;
  }

  /** The ledger first: it must not be told that there is nothing any more. */
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

/** A simulated GPU that there is no more was configured away: the simulator makes as many as it is told. */
function simulatedGpus(kind: Backend['kind']): string[] {
  const count = process.env['NVIDIA_VIRTUAL_SIMULATED_GPUS'];
  return kind === 'simulated' && count !== undefined ? [`of ${count}`] : [];
}

function logOptions({ log = '-', logLevel }: Configuration) {
  return { file: log, level: logLevel };
}

function settingsOf({ limits, window, warmWorkers, workerUids }: Configuration): NodeSettings {
  return { limits, window, users: workerUids, warmWorkers: (gpu) => forGpu(warmWorkers, gpu, 0) };
}
