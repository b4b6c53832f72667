import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { renew } from '@nvidia-virtual/kube-common/certificates/keyring';
import { dataOf } from '@nvidia-virtual/kube-common/certificates/secret';
import { schedulerConfiguration } from '@nvidia-virtual/scheduler-ext/testing/scheduler-configuration';
import { webhookConfigurations } from '@nvidia-virtual/scheduler-ext/testing/webhook-configurations';
import { writersOf } from '@nvidia-virtual/scheduler-ext/webhook/webhook-service';
import { until } from '@nvidia-virtual/service/testing/eventually';
import { REPOSITORY } from '@nvidia-virtual/toolchain/repository';
import type { ControlPlane } from '../control-plane.js';
import type { Daemon } from '../daemon.js';
import { ClusterUnderTest, MERGE } from '../scheduler/cluster-under-test.js';
import { gpu, pod } from '../scheduler/objects.js';
import { registration } from '../usage/objects.js';
import type { Job } from './monitoring.js';

const NAMESPACE = 'nvidia-virtual';
const WRITERS = writersOf({ namespace: NAMESPACE, release: NAMESPACE });
const SCHEDULER_EXT = 'scheduler-ext/bin/scheduler-ext.js';
const DAY = 24 * 3600 * 1000;
/** A scheduling attempt of more than a second is slow. */
const SLOW_MS = 2500;

interface Ports {
  readonly webhook: number;
  readonly webhookHttp: number;
  readonly extender: number;
  readonly extenderHttp: number;
  readonly scheduler: number;
  readonly usage: number;
  readonly usageHttp: number;
}

/** Webhook, extender with kube-scheduler, and usage API beside a real API server. */
export class ControlProcesses {
  readonly #plane: ControlPlane;
  readonly #cluster: ClusterUnderTest;
  readonly #ports: Ports;
  #extender!: Daemon;
  #webhook!: Daemon;

  constructor(plane: ControlPlane, ports: Ports) {
    this.#plane = plane;
    this.#cluster = new ClusterUnderTest(plane.adminKubeconfig);
    this.#ports = ports;
  }

  async start(redis: string): Promise<void> {
    await this.#post('/api/v1/namespaces', { kind: 'Namespace', metadata: { name: NAMESPACE } });
    await this.#cluster.addNode('scheduled', [gpu('GPU-a')]);
    await this.#startWebhook();
    await this.#startScheduler();
    await this.#startUsageApi(redis);
  }

  /** How Prometheus reads them, as the chart says. */
  async jobs(): Promise<Job[]> {
    const { webhookHttp, extenderHttp, scheduler, usageHttp } = this.#ports;
    const local = (port: number) => [`127.0.0.1:${port}`];
    const authorization = { credentials_file: await this.#readerToken() };
    const tls_config = { insecure_skip_verify: true };
    const server = new URL(this.#plane.url);
    const secured = { more: { scheme: 'https', tls_config, authorization } };
    return [
      { job_name: 'webhook', targets: local(webhookHttp) },
      { job_name: 'extender', targets: local(extenderHttp) },
      { job_name: 'usage-api', targets: local(usageHttp) },
      { job_name: 'kube-scheduler', targets: local(scheduler), ...secured },
      { job_name: 'apiserver', targets: [server.host], ...secured },
    ];
  }

  /** Places a pod. The extender does not run for a while if it is slow. */
  async place(name: string, isSlow = false): Promise<void> {
    if (isSlow) process.kill(this.#extender.pid, 'SIGSTOP');
    await this.#cluster.create(pod(name));
    if (isSlow) {
      const end = performance.now() + SLOW_MS;
      await until(() => performance.now() > end, 'the scheduler waits for the extender');
      process.kill(this.#extender.pid, 'SIGCONT');
    }
    await this.#cluster.bound(name);
  }

  /**
   * Makes a Service of Prometheus, as the Prometheus Operator does. The API server passes requests
   * on to addresses of pods only.
   */
  async exposePrometheus([host, port]: readonly [host: string, port: number]): Promise<void> {
    const namespace = 'monitoring';
    const name = 'prometheus-operated';
    const objects = `/api/v1/namespaces/${namespace}`;
    const ports = [{ name: 'web', port, protocol: 'TCP' }];
    await this.#post('/api/v1/namespaces', { metadata: { name: namespace } });
    await this.#post(`${objects}/services`, {
      metadata: { name },
      spec: { ports: [{ name: 'web', port: 9090, protocol: 'TCP' }] },
    });
    await this.#post(`${objects}/pods`, {
      metadata: { name },
      spec: { containers: [{ name: 'prometheus', image: 'any' }] },
    });
    await this.#cluster.api.request({
      method: 'PATCH',
      path: `${objects}/pods/${name}/status`,
      body: { status: { podIP: host, podIPs: [{ ip: host }] } },
      contentType: MERGE,
    });
    const targetRef = { kind: 'Pod', namespace, name };
    await this.#post(`${objects}/endpoints`, {
      metadata: { name },
      subsets: [{ addresses: [{ ip: host, targetRef }], ports }],
    });
  }

  killWebhook(): Promise<void> {
    return this.#webhook.kill();
  }

  /** Whether the API server creates a pod that asks for a GPU. */
  async creates(name: string): Promise<boolean> {
    return this.#cluster.create(pod(name)).then(
      () => true,
      () => false,
    );
  }

  stop(): void {
    this.#cluster.api.close();
  }

  async #startWebhook(): Promise<void> {
    const { webhook, webhookHttp } = this.#ports;
    for (const configuration of webhookConfigurations({
      name: NAMESPACE,
      writers: WRITERS,
      client: (at) => ({ url: `https://127.0.0.1:${webhook}${at}` }),
    })) {
      const { kind } = configuration as { kind: string };
      await this.#post(
        `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}s`,
        configuration,
      );
    }
    this.#webhook = this.#program('webhook', SCHEDULER_EXT, [
      ...['webhook', '--listen', `127.0.0.1:${webhook}`, '--http', `127.0.0.1:${webhookHttp}`],
      ...['--host', '127.0.0.1'],
    ]);
    await this.#webhook.serving(() => isReady(webhookHttp));
  }

  async #startScheduler(): Promise<void> {
    const { extender, extenderHttp, scheduler } = this.#ports;
    const listen = ['--listen', `127.0.0.1:${extender}`, '--http', `127.0.0.1:${extenderHttp}`];
    // The webhook lets no other account assign GPUs.
    const account = this.#plane.kubeconfig(WRITERS.scheduler, ['system:masters']);
    const extenderArguments = ['extender', ...listen];
    this.#extender = this.#program('extender', SCHEDULER_EXT, extenderArguments, account);
    await this.#extender.serving(() => isReady(extenderHttp));
    await this.#plane.startScheduler(
      'kube-scheduler',
      schedulerConfiguration(`http://127.0.0.1:${extender}`, 'binpack'),
      scheduler,
    );
  }

  /** Its certificate expires in ten days, and its Secret cannot be changed. */
  async #startUsageApi(redis: string): Promise<void> {
    const { usage, usageHttp } = this.#ports;
    for (const object of registration('127.0.0.2', [usage])) {
      const { kind } = object as { kind: string };
      if (kind === 'APIService')
        await this.#post('/apis/apiregistration.k8s.io/v1/apiservices', object);
    }
    const name = 'nvidia-virtual-usage-api';
    const hosts = [`${name}.${NAMESPACE}.svc`, `${name}.${NAMESPACE}.svc.cluster.local`];
    const keyring = await renew(undefined, hosts, new Date(Date.now() - 80 * DAY));
    await this.#post(`/api/v1/namespaces/${NAMESPACE}/secrets`, {
      kind: 'Secret',
      metadata: { name },
      immutable: true,
      data: dataOf(keyring),
    });
    const listen = ['--listen', `127.0.0.1:${usage}`, '--http', `127.0.0.1:${usageHttp}`];
    const program = this.#program('usage-api', 'usage-api/bin/usage-api.js', [
      ...listen,
      ...['--ledger-url', redis, '--resting-interval', '1s'],
    ]);
    await program.serving(() => isReady(usageHttp));
  }

  #program(
    name: string,
    program: string,
    args: readonly string[],
    kubeconfig = this.#plane.adminKubeconfig,
  ): Daemon {
    return this.#plane.startDaemon(name, {
      program: process.execPath,
      args: [path.join(REPOSITORY, program), ...args, '--kubeconfig', kubeconfig],
    });
  }

  /** A file with the token of an account that may read metrics and nothing else. */
  async #readerToken(): Promise<string> {
    const metadata = { name: 'prometheus' };
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    const account = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`;
    await this.#post(account, { metadata });
    await this.#post(`${rbac}/clusterroles`, {
      metadata,
      rules: [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }],
    });
    await this.#post(`${rbac}/clusterrolebindings`, {
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', ...metadata },
      subjects: [{ kind: 'ServiceAccount', namespace: NAMESPACE, ...metadata }],
    });
    const { status } = await this.#post<{ status: { token: string } }>(
      `${account}/prometheus/token`,
      { spec: {} },
    );
    const file = path.join(this.#plane.directory, 'prometheus-token');
    writeFileSync(file, status.token);
    return file;
  }

  #post<T>(at: string, body: object): Promise<T> {
    return this.#cluster.api.request<T>({ method: 'POST', path: at, body });
  }
}

async function isReady(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}
