import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { isIPv6 } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import { eventually } from '@nvidia-virtual/service/testing/eventually';
import { buildKubernetesTools, kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { type ApiServerFiles, apiServerArguments, type Place, servicesOf } from './api-server.js';
import { Authority, makeKey } from './authority.js';
import { Daemon, type DaemonOptions } from './daemon.js';
import { writeKubeconfig } from './kubeconfig.js';
import { freePorts, hostAddress } from './ports.js';

interface ControlPlaneOptions {
  /** Address of the API server; Services are of the same family. @default 127.0.0.1 */
  readonly address?: string;
  /**
   * Adds service accounts, controllers and garbage collection. Without them, pods need no service
   * account.
   */
  readonly controllerManager?: boolean;
  /** Kubernetes' default scheduler with default settings. */
  readonly scheduler?: boolean;
  /** Feature gates of the API server, for example `GangScheduling=true`. */
  readonly featureGates?: string;
  /** APIs that the API server serves in addition, for example `scheduling.k8s.io/v1alpha2=true`. */
  readonly runtimeConfig?: string;
  /** Called with progress messages. */
  readonly say?: (line: string) => void;
}

/**
 * etcd and the API server of a test: on free ports, in a private directory, and they always end
 * with the process of the test.
 */
export class ControlPlane {
  readonly directory = mkdtempSync(path.join(tmpdir(), 'control-plane-'));
  readonly authority = new Authority(path.join(this.directory, 'authority'), 'kubernetes');
  readonly #frontProxy = new Authority(path.join(this.directory, 'front-proxy'), 'front-proxy');
  readonly #serviceAccountKey = makeKey(path.join(this.directory, 'service-accounts.key'));
  readonly #options: ControlPlaneOptions;
  readonly #place: Place;
  readonly #daemons: Daemon[] = [];
  #files = 0;

  private constructor(options: ControlPlaneOptions, place: Place) {
    this.#options = options;
    this.#place = place;
    mkdirSync(path.join(this.directory, 'logs'));
  }

  /** Resolves when the API server is ready. The caller calls stop(). */
  static async start(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
    await buildKubernetesTools(['etcd', 'kube-apiserver', 'kubectl'], options.say);
    const [port, etcdPort, etcdPeerPort] = (await freePorts(3)) as [number, number, number];
    const plane = new ControlPlane(options, {
      address: options.address ?? '127.0.0.1',
      port,
      etcdPort,
      etcdPeerPort,
    });
    try {
      await plane.#start();
      return plane;
    } catch (error) {
      await plane.stop();
      throw error;
    }
  }

  get url(): string {
    const { address, port } = this.#place;
    return `https://${isIPv6(address) ? `[${address}]` : address}:${port}`;
  }

  /** For a client that may do everything. */
  get adminKubeconfig(): string {
    return path.join(this.directory, 'admin.kubeconfig');
  }

  /** A kubeconfig with which the API server authenticates the bearer as this user. */
  kubeconfig(user: string, groups: readonly string[] = [], namespace?: string): string {
    return this.#write(
      this.authority.issue({ commonName: user, organizations: groups }),
      namespace,
    );
  }

  /** A kubeconfig with a token of the service account from the API server. */
  kubeconfigFor(token: string, namespace?: string): string {
    return this.#write({ token }, namespace);
  }

  /** Starts another component that ends with this control plane. */
  startDaemon(name: string, options: Omit<DaemonOptions, 'logFile'>): Daemon {
    const daemon = new Daemon(name, {
      ...options,
      logFile: path.join(this.directory, 'logs', `${name}.log`),
    });
    this.#daemons.push(daemon);
    return daemon.start();
  }

  /**
   * Starts kube-scheduler. `configuration` is a KubeSchedulerConfiguration; the connection to the
   * API server is added.
   * @param port where it serves its metrics over TLS, to clients that the API server lets read them
   */
  async startScheduler(
    name = 'kube-scheduler',
    configuration: object = {},
    port = 0,
  ): Promise<Daemon> {
    await buildKubernetesTools(['kube-scheduler'], this.#options.say);
    const kubeconfig = this.kubeconfig('system:kube-scheduler');
    const file = path.join(this.directory, `${name}.json`);
    const serving = [
      ...['--bind-address', '127.0.0.1', '--cert-dir', path.join(this.directory, name)],
      ...['--authentication-kubeconfig', kubeconfig, '--authorization-kubeconfig', kubeconfig],
    ];
    writeFileSync(
      file,
      JSON.stringify({ ...SCHEDULER_DEFAULTS, ...configuration, clientConnection: { kubeconfig } }),
    );
    return this.startDaemon(name, {
      program: kubernetesTool('kube-scheduler'),
      args: [
        ...['--config', file, '--secure-port', String(port), ...(port > 0 ? serving : [])],
        ...(this.#options.featureGates ? ['--feature-gates', this.#options.featureGates] : []),
      ],
    });
  }

  async startControllerManager(): Promise<Daemon> {
    await buildKubernetesTools(['kube-controller-manager'], this.#options.say);
    const signing = [
      '--service-account-private-key-file',
      this.#serviceAccountKey,
      '--root-ca-file',
      this.authority.certificateFile,
    ];
    const access = [
      '--kubeconfig',
      this.kubeconfig('system:kube-controller-manager'),
      '--use-service-account-credentials',
    ];
    const args = [...access, ...signing, '--leader-elect=false', '--secure-port', '0'];
    return this.startDaemon('kube-controller-manager', {
      program: kubernetesTool('kube-controller-manager'),
      args,
    });
  }

  /** The component of that name that was started last, to kill or restart it. */
  daemon(name: string): Daemon {
    const found = this.#daemons.findLast((one) => one.name === name);
    if (!found)
      throw new Error(
        `there is no ${name}; there are ${this.#daemons.map((one) => one.name).join(', ')}`,
      );
    return found;
  }

  async ready(): Promise<void> {
    await this.daemon('kube-apiserver').serving(() => this.#answersReady());
  }

  /** Kills everything that it started and removes its directory. */
  async stop(): Promise<void> {
    await Promise.all(this.#daemons.map((daemon) => daemon.kill()));
    rmSync(this.directory, { recursive: true, force: true });
  }

  async #start(): Promise<void> {
    const { etcdPort, etcdPeerPort } = this.#place;
    this.#write(
      this.authority.issue({ commonName: 'admin', organizations: ['system:masters'] }),
      undefined,
      this.adminKubeconfig,
    );
    this.startDaemon('etcd', {
      program: kubernetesTool('etcd'),
      args: etcdArguments(path.join(this.directory, 'etcd'), etcdPort, etcdPeerPort),
    });
    this.startDaemon('kube-apiserver', {
      program: kubernetesTool('kube-apiserver'),
      args: this.#apiServerArguments(),
    });
    await this.ready();
    await this.#hasDefaultNamespace();
    if (this.#options.controllerManager) await this.startControllerManager();
    if (this.#options.scheduler) await this.startScheduler();
  }

  /** The API server makes it beside its other work, so it may be ready before. */
  async #hasDefaultNamespace(): Promise<void> {
    const api = ApiServer.load(this.adminKubeconfig);
    try {
      await eventually(() => api.request({ path: '/api/v1/namespaces/default' }));
    } finally {
      api.close();
    }
  }

  #apiServerArguments(): string[] {
    const names = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'localhost'].map(
      (name) => `DNS:${name}`,
    );
    const { address } = this.#place;
    const services = servicesOf(this.#place).address;
    const addresses = new Set(['127.0.0.1', services, address, hostAddress()]);
    const files: ApiServerFiles = {
      directory: path.join(this.directory, 'kube-apiserver'),
      authority: this.authority,
      server: this.authority.issue({
        commonName: 'kube-apiserver',
        names: [...names, ...[...addresses].map((one) => `IP:${one}`)],
      }),
      kubeletClient: this.authority.issue({
        commonName: 'kube-apiserver',
        organizations: ['system:masters'],
      }),
      frontProxy: this.#frontProxy,
      frontProxyClient: this.#frontProxy.issue({ commonName: 'front-proxy-client' }),
      serviceAccountKey: this.#serviceAccountKey,
    };
    const { controllerManager = false, featureGates, runtimeConfig } = this.#options;
    return [
      ...apiServerArguments(this.#place, files, controllerManager),
      ...(featureGates === undefined ? [] : ['--feature-gates', featureGates]),
      ...(runtimeConfig === undefined ? [] : ['--runtime-config', runtimeConfig]),
    ];
  }

  #write(
    credentials: Parameters<typeof writeKubeconfig>[2],
    namespace?: string,
    file?: string,
  ): string {
    const cluster = { server: this.url, authorityFile: this.authority.certificateFile };
    return writeKubeconfig(
      file ?? path.join(this.directory, `${++this.#files}.kubeconfig`),
      cluster,
      credentials,
      namespace,
    );
  }

  #answersReady(): Promise<boolean> {
    return new Promise((resolve) => {
      const ca = readFileSync(this.authority.certificateFile);
      const asked = request(`${this.url}/readyz`, { ca, timeout: 5000 }, (answer) =>
        resolve(answer.resume().statusCode === 200),
      );
      asked.on('timeout', () => asked.destroy());
      asked.on('error', () => resolve(false));
      asked.end();
    });
  }
}

const SCHEDULER_DEFAULTS = {
  apiVersion: 'kubescheduler.config.k8s.io/v1',
  kind: 'KubeSchedulerConfiguration',
  leaderElection: { leaderElect: false },
};

/** Nothing outlives the test, so nothing needs to reach the disk. */
function etcdArguments(directory: string, port: number, peerPort: number): string[] {
  const url = `http://127.0.0.1:${port}`;
  const peers = `http://127.0.0.1:${peerPort}`;
  const client = ['--listen-client-urls', url, '--advertise-client-urls', url];
  const peer = [
    '--listen-peer-urls',
    peers,
    '--initial-advertise-peer-urls',
    peers,
    '--initial-cluster',
    `default=${peers}`,
  ];
  return ['--data-dir', directory, '--unsafe-no-fsync', ...client, ...peer];
}
