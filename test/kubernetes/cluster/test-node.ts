import type { V1Node } from '@kubernetes/client-node';
import { kubernetesTool } from '@nvidia-virtual/toolchain/kubernetes-tools';
import { ControlPlane } from '../control-plane.js';
import type { Daemon } from '../daemon.js';
import { Cluster } from './cluster.js';
import {
  type ContainerRuntime,
  importImages,
  prepareRuntime,
  removeImages,
  runtimeServes,
} from './container-runtime.js';
import { claimNode, loseMemory, sweepNode } from './leavings.js';
import { makeNetwork } from './network.js';
import { coreDns, kubelet, kubeProxy, NODE_NAME } from './node-agents.js';
import { NODE_ADDRESS } from './places.js';

const NODE_DAEMONS = ['kubelet', 'kube-proxy', 'containerd'] as const;

/** A Kubernetes of one node on this machine, with upstream components only. */
export class TestNode extends Cluster {
  readonly plane: ControlPlane;
  readonly runtime: ContainerRuntime;

  private constructor(plane: ControlPlane, runtime: ContainerRuntime) {
    super({
      kubeconfig: plane.adminKubeconfig,
      nodeName: NODE_NAME,
      directory: plane.directory,
      kubectl: kubernetesTool('kubectl'),
      helm: kubernetesTool('helm'),
    });
    this.plane = plane;
    this.runtime = runtime;
  }

  /**
   * Resolves when its node is ready. The caller calls stop().
   * @param archives of the images to import, which may still be built
   */
  static async start(
    runtime: ContainerRuntime,
    archives: Promise<readonly string[]>,
    say: (line: string) => void,
  ): Promise<TestNode> {
    await sweepNode();
    claimNode();
    makeNetwork();
    const plane = await ControlPlane.start({
      address: NODE_ADDRESS,
      controllerManager: true,
      scheduler: true,
      say,
    });
    const cluster = new TestNode(plane, runtime);
    try {
      await cluster.#start(archives);
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  daemon(
    name:
      | 'containerd'
      | 'kubelet'
      | 'kube-proxy'
      | 'kube-apiserver'
      | 'kube-scheduler'
      | 'kube-controller-manager',
  ): Daemon {
    return this.plane.daemon(name);
  }

  /** Imports images as if they had been pulled. */
  async import(archives: readonly string[]): Promise<void> {
    await importImages(this.runtime, archives);
  }

  /** Removes images as if they had never been pulled. */
  async forget(images: readonly string[]): Promise<void> {
    await removeImages(this.runtime, images);
  }

  /** Simulates a power failure: memory is lost, the disk is kept. */
  async loseNode(): Promise<void> {
    await Promise.all(NODE_DAEMONS.map((name) => this.plane.daemon(name).kill()));
    await loseMemory();
  }

  /** Boots it. */
  async startNode(): Promise<void> {
    await this.restartRuntime();
    this.plane.daemon('kube-proxy').start();
    await this.restartKubelet();
  }

  /** Ends everything, pods first, and leaves nothing on this machine. */
  async stop(): Promise<void> {
    await this.plane.stop();
    await sweepNode();
  }

  async #start(archives: Promise<readonly string[]>): Promise<void> {
    const containerd = this.plane.startDaemon('containerd', await prepareRuntime(this.runtime));
    await containerd.serving(() => runtimeServes(this.runtime));
    const imported = archives.then((files) => importImages(this.runtime, files));
    await Promise.all([imported, this.#startAgents()]);
    // Only now do pods of the product come.
    await this.kubectl('label', 'node', NODE_NAME, 'nvidia-virtual/node=true');
  }

  async #startAgents(): Promise<void> {
    await this.#nameApiServer();
    this.plane.startDaemon('coredns', coreDns(this.plane));
    this.plane.startDaemon('kube-proxy', kubeProxy(this.plane));
    await this.plane.startDaemon('kubelet', kubelet(this.plane)).serving(() => this.#readySince(0));
  }

  /**
   * Restarts the kubelet. Resolves when the new one has reported that its node is ready; an older
   * report stays for a while.
   */
  async restartKubelet(): Promise<void> {
    const kubelet = this.plane.daemon('kubelet');
    await kubelet.kill();
    const start = Math.floor(Date.now() / 1000) * 1000;
    await kubelet.start().serving(() => this.#readySince(start));
  }

  async restartRuntime(): Promise<void> {
    const containerd = this.plane.daemon('containerd');
    await containerd.kill();
    await containerd.start().serving(() => runtimeServes(this.runtime));
  }

  async #readySince(milliseconds: number): Promise<boolean> {
    const query = { fieldSelector: `metadata.name=${NODE_NAME}` };
    const { items } = await this.api.request<{ items: V1Node[] }>({ path: '/api/v1/nodes', query });
    const ready = items[0]?.status?.conditions?.find(({ type }) => type === 'Ready');
    return ready?.status === 'True' && Date.parse(String(ready.lastHeartbeatTime)) >= milliseconds;
  }

  /**
   * The Service `kubernetes` leads to the API server. It does not register itself, because that
   * fails for the addresses of other tests.
   */
  async #nameApiServer(): Promise<void> {
    await this.apply({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: 'kubernetes',
        namespace: 'default',
        labels: { 'kubernetes.io/service-name': 'kubernetes' },
      },
      addressType: 'IPv4',
      endpoints: [{ addresses: [NODE_ADDRESS], conditions: { ready: true } }],
      ports: [{ name: 'https', port: Number(new URL(this.plane.url).port), protocol: 'TCP' }],
    });
  }
}
