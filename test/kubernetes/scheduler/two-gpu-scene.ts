import { NodeUnderTest } from '@nvidia-virtual/device-plugin/testing/node-under-test';
import type { ProcessUnderTest } from '@nvidia-virtual/device-plugin/testing/process-under-test';
import type { ExtenderService } from '@nvidia-virtual/scheduler-ext/extender/extender-service';
import { ControlPlane } from '../control-plane.js';
import { ClusterUnderTest } from './cluster-under-test.js';
import { gpu } from './objects.js';
import { startExtender, startScheduler } from './scheduling.js';

interface SceneOptions {
  readonly controllerManager?: boolean;
  /** Of gpu-proxy. */
  readonly args?: readonly string[];
  /** Of the extender. */
  readonly evictAfter?: number;
}

/**
 * A cluster whose node `node-1` has two GPUs, with real gpu-proxy and device plugin. Only the
 * kubelet is fake; no containers run.
 */
export class TwoGpuScene {
  plane!: ControlPlane;
  cluster!: ClusterUnderTest;
  node!: NodeUnderTest;
  proxy!: ProcessUnderTest;
  extender!: ExtenderService;
  readonly #options: SceneOptions;

  constructor(options: SceneOptions = {}) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { controllerManager = false } = this.#options;
    this.plane = await ControlPlane.start({ controllerManager });
    this.cluster = new ClusterUnderTest(this.plane.adminKubeconfig);
    await this.cluster.addNode('node-1', [gpu('GPU-a'), gpu('GPU-b')]);
    this.node = new NodeUnderTest();
    await this.node.kubelet.start();
    this.node.startPlugin(['--kubeconfig', this.plane.adminKubeconfig]);
    await this.startProxy();
  }

  async startProxy(): Promise<void> {
    const { args = [] } = this.#options;
    const kubeconfig = this.plane.adminKubeconfig;
    this.proxy = await this.node.startProxy({ gpus: 2, kubeconfig, args });
  }

  async startScheduling(): Promise<void> {
    const { evictAfter } = this.#options;
    const kubeconfig = this.plane.adminKubeconfig;
    this.extender = await startExtender({ kubeconfig, evictAfter });
    await startScheduler(this.plane, this.extender);
  }

  async stopScheduling(): Promise<void> {
    await this.plane?.daemon('kube-scheduler').stop();
    await this.extender?.end();
  }

  /** Also after a failed start. */
  async end(): Promise<void> {
    await this.node?.remove();
    this.cluster?.api.close();
    await this.plane?.stop();
  }
}
