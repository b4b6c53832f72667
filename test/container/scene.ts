import { chmodSync, cpSync, existsSync } from 'node:fs';
import path from 'node:path';
import type { V1Pod } from '@kubernetes/client-node';
import { NodeUnderTest } from '@nvidia-virtual/device-plugin/testing/node-under-test';
import type { ProcessUnderTest } from '@nvidia-virtual/device-plugin/testing/process-under-test';
import { askNode } from '@nvidia-virtual/gpu-proxy/testing/ask-node';
import { RESOURCE } from '@nvidia-virtual/kube-common/names';
import type {
  AllocationMessage,
  GpuMessage,
  SessionMessage,
} from '@nvidia-virtual/node-state/admin/messages';
import { KubeletResources } from '../kubernetes/binding/kubelet-resources.js';
import { type CgroupDriver, PodCgroups } from '../kubernetes/binding/pod-cgroup.js';
import { RELEASE } from '../paths.js';
import { lookUntil, until } from '../processes.js';
import type { Cluster } from './cluster.js';
import { Container } from './container.js';

/** Where .ci/criu puts CRIU, beside the worker. */
const CRIU = path.join(RELEASE, 'native', 'worker', 'criu');
/** As in the chart. */
const WORKER_UIDS = '72000-72099';

interface SceneOptions {
  readonly backend: 'real' | 'simulated';
  readonly cluster: Cluster;
  readonly shown: readonly string[];
  /** Where gpu-proxy places workers. */
  readonly placement: 'pod' | 'none';
  /** The cgroup driver that the test uses as the kubelet. */
  readonly cgroups: CgroupDriver;
  readonly concurrent: boolean;
}

/** A pod with one container that the kubelet admitted. */
export interface StartedPod {
  readonly pod: V1Pod;
  readonly container: Container;
  readonly slots: readonly string[];
}

export interface User {
  readonly allocation: AllocationMessage;
  readonly session: SessionMessage;
}

/**
 * One node: plugin, gpu-proxy and arbiter are processes, and the test is its kubelet and runtime.
 */
export class Scene {
  readonly node = new NodeUnderTest({ podResources: false });
  readonly #options: SceneOptions;
  readonly #resources = new KubeletResources(this.node.kubelet.root);
  readonly #cgroups: PodCgroups;
  readonly #taken = new Set<string>();
  readonly hasCriu = existsSync(CRIU);
  proxy!: ProcessUnderTest;

  constructor(options: SceneOptions) {
    this.#options = options;
    this.#cgroups = new PodCgroups('container', options.cgroups);
  }

  /** @throws Error if the slots are not offered in time */
  async start(): Promise<void> {
    const { backend, cluster, placement } = this.#options;
    // The users of workers enter it.
    chmodSync(this.node.directory, 0o711);
    await this.node.kubelet.start();
    await this.#resources.start();
    if (this.hasCriu) cpSync(CRIU, path.join(this.node.installation, 'criu'), { recursive: true });
    // A machine with a GPU may itself be a container of NVIDIA's runtime.
    const plugin = this.node.startPlugin([
      '--allow',
      'nvidia-runtime',
      '--kubeconfig',
      cluster.kubeconfig,
    ]);
    const { kubeconfig } = cluster;
    const args = [
      '--gpu-mode',
      this.#mode,
      '--worker-uids',
      WORKER_UIDS,
      '--managed-memory',
      'moves',
    ];
    this.proxy = await this.node.startProxy({ backend, placement, kubeconfig, args });
    const offered = await until(() => this.node.kubelet.healthy.length > 0);
    if (!offered) throw new Error(`no slots were offered:\n${plugin.output}${this.proxy.output}`);
  }

  /** Does the work of scheduler, kubelet and runtime. */
  async startPod(name: string, count: number): Promise<StartedPod> {
    const { kubelet, directory } = this.node;
    const slots = kubelet.healthy.filter((slot) => !this.#taken.has(slot)).slice(0, count);
    const limits = { [RESOURCE]: String(count) };
    const spec = {
      nodeName: 'node-1',
      containers: [{ name: 'main', image: 'any', resources: { limits } }],
    };
    const annotations = { 'nvidia-virtual/mode': this.#mode };
    const pod = await this.#options.cluster.createPod({ metadata: { name, annotations }, spec });
    const answer = await kubelet.allocate(slots);
    for (const slot of slots) this.#taken.add(slot);
    this.#resources.give(name, 'main', slots);
    const { processFiles } = this.#cgroups.container(pod.metadata?.uid as string);
    const container = new Container({
      directory: path.join(directory, name),
      answer,
      processFiles,
      shown: this.#options.shown,
    });
    return { pod, container, slots };
  }

  async endPod({ pod, slots }: StartedPod): Promise<void> {
    const name = pod.metadata?.name as string;
    await this.#options.cluster.deletePod(name);
    this.#resources.take(name, 'main');
    for (const slot of slots) this.#taken.delete(slot);
  }

  async gpus(): Promise<readonly GpuMessage[]> {
    return (await askNode(this.node.state, 'listGpus', {})).gpus;
  }

  async allocations(): Promise<readonly AllocationMessage[]> {
    return (await askNode(this.node.state, 'listAllocations', {})).allocations;
  }

  /** Whether one of these cgroups is below the pod's. */
  isBeneath(podUid: string, cgroups: readonly string[]): boolean {
    const pods = this.#cgroups.pod(podUid).map((directory) => path.basename(directory));
    return cgroups.some((line) => pods.some((pod) => line.includes(pod)));
  }

  /** Until the pod's programs have ended. */
  async becomesIdle({ pod }: StartedPod): Promise<void> {
    const look = () => this.#allocationOf(pod);
    const allocation = await lookUntil(look, (found) => found?.sessions.length === 0);
    if (allocation?.sessions.length !== 0)
      throw new Error(`pod ${pod.metadata?.name} still uses the GPU`);
  }

  /** The program of the pod, once it has copied to its memory. @throws Error if none has in time */
  async user({ pod }: StartedPod): Promise<User> {
    const look = async () => {
      const allocation = await this.#allocationOf(pod);
      const session = allocation?.sessions.find(({ bytesHostToDevice }) => bytesHostToDevice > 0);
      return allocation && session && { allocation, session };
    };
    const user = await lookUntil(look, (found) => found !== undefined, { everyMs: 20 });
    if (user === undefined) throw new Error(`pod ${pod.metadata?.name} does not use the GPU`);
    return user;
  }

  /** Takes the GPU from it, and gives it back. @returns the bytes that were out */
  async suspend({ allocation: { id } }: User): Promise<number> {
    const { outBytes } = await askNode(this.node.state, 'suspendAllocation', { id });
    await askNode(this.node.state, 'resumeAllocation', { id });
    return outBytes;
  }

  /** Ends its worker, and makes it again from files. */
  async writeAndContinue({ allocation: { id } }: User): Promise<void> {
    const directory = path.join(this.node.state, 'checkpoints', id);
    const request = { id, directory, key: '' };
    await askNode(this.node.state, 'checkpointAllocation', request);
    await askNode(this.node.state, 'restoreAllocation', { directory, key: '' });
  }

  async end(): Promise<void> {
    this.#resources.stop();
    await this.node.remove();
    await this.#cgroups.remove();
  }

  async #allocationOf({ metadata }: V1Pod): Promise<AllocationMessage | undefined> {
    return (await this.allocations()).find(({ owner }) => owner?.podUid === metadata?.uid);
  }

  get #mode(): string {
    return this.#options.concurrent ? 'concurrent' : 'exclusive';
  }
}
