import type { Socket } from 'node:net';
import type { V1Pod } from '@kubernetes/client-node';
import { ApiServer } from '@nvidia-virtual/kubernetes/api-server';
import type { AllocationSpecification } from '@nvidia-virtual/ledger';
import type { Logger } from 'pino';
import type { Addon } from '../addon.js';
import { ProxyError } from '../errors.js';
import type { GpuHealth } from '../gpu-health.js';
import type { GpuNode } from '../node.js';
import type { Session } from '../session.js';
import type { StateDirectory } from '../state-directory.js';
import { Absence } from './absence.js';
import { Binding, eventReason, targetOf } from './binding.js';
import { Grants } from './grants.js';
import { NodePods } from './node-pods.js';
import { identifyPeer } from './peer.js';
import { PodEvents } from './pod-events.js';
import { PodResources } from './pod-resources.js';
import { Release } from './release.js';
import type { ServedGrant } from './served-grant.js';
import { containerNamed } from './tenant.js';

export interface KubernetesOptions {
  /** Its name in Kubernetes. */
  readonly nodeName: string;
  readonly kubeletRoot: string;
  readonly slotsPerGpu: number;
  readonly addon: Addon;
  readonly logger: Logger;
  readonly patienceMs: number;
  readonly health: GpuHealth;
}

/** All that a node does because it is one of Kubernetes: grants, pods, their binding and their end. */
export class KubernetesNode {
  readonly pods: NodePods;
  readonly events: PodEvents;
  readonly #options: KubernetesOptions;
  readonly #api: ApiServer;
  readonly #podResources: PodResources;
  #grants: Grants | undefined;
  #release: Release | undefined;
  #absence: Absence | undefined;

  /** @throws ProxyError KUBECONFIG_MISSING */
  constructor(options: KubernetesOptions) {
    this.#options = options;
    this.#api = loadApi();
    const { nodeName, kubeletRoot, logger } = options;
    this.pods = new NodePods(this.#api, nodeName, logger);
    this.events = new PodEvents(this.#api, nodeName, logger);
    this.#podResources = new PodResources(kubeletRoot);
  }

  /** Tells pods what goes wrong on it, and what went wrong while no gpu-proxy was there. */
  observe(node: GpuNode): void {
    node.on('trouble', (allocation, error) => this.#tellPod(allocation, error));
  }

  /** Serves the grants of this node, now and to come. */
  start(node: GpuNode, state: StateDirectory): void {
    const { addon, logger, slotsPerGpu, patienceMs, health } = this.#options;
    const { pods, events } = this;
    const podResources = this.#podResources;
    const binding = new Binding({ node, pods, podResources, events, logger, slotsPerGpu, patienceMs, health });
    this.#grants = new Grants({ node, state, addon, binding, logger });
    this.#release = new Release({ node, grants: this.#grants, pods, podResources, logger });
    node.on('sessionEnded', ({ session }) => health.noteEnd(session, gpusOf(node, session)));
    this.#absence = new Absence(state.directory);
    this.#absence.tell(pods, events);
    pods.start();
  }

  /** Grants that are no allocations yet. */
  get grants(): ServedGrant[] {
    return this.#grants?.all ?? [];
  }

  /** A pod's own container may use its allocation, and nobody else. */
  whyNotAllowed({ owner, id }: AllocationSpecification, connection: Socket): ProxyError | undefined {
    if (!owner) return undefined;
    try {
      const peer = identifyPeer(this.#options.addon, connection);
      const pod = this.pods.find(peer.podUid);
      const values = { pid: peer.pid, id, pod: `${owner.namespace}/${owner.pod}`, owner: owner.container };
      let refusal: ProxyError | undefined;
      if (peer.podUid !== owner.podUid && !this.#isStaticPodOf(owner.podUid, pod)) refusal = new ProxyError('PEER_OTHER_POD', values);
      const container = pod && containerNamed(pod, peer.containerId);
      if (!refusal && container !== undefined && container !== owner.container)
        refusal = new ProxyError('PEER_OTHER_CONTAINER', { ...values, container });
      if (refusal && pod) this.events.warn(targetOf(pod), eventReason(refusal.code), refusal.message);
      return refusal;
    } catch (error) {
      if (error instanceof ProxyError) return error;
      throw error;
    }
  }

  /** Allocations of static pods that were bound by an earlier build have the UID of what shows the pod. */
  #isStaticPodOf(ownerUid: string, pod: V1Pod | undefined): boolean {
    return pod !== undefined && pod === this.pods.find(ownerUid);
  }

  #tellPod({ id, owner }: AllocationSpecification, error: ProxyError): void {
    if (!owner) return;
    const pod = { namespace: owner.namespace, name: owner.pod, uid: owner.podUid };
    const reason = eventReason(error.code);
    // Programs that live on a limit, or try again and again, meet it each time with other figures.
    const repeated = reason === 'GpuMemoryQuotaReached' || reason === 'GpuLimitReached' || error.code === 'ALLOCATION_DRAINING';
    this.events.warn(pod, reason, error.message, repeated ? `${error.code} ${id}` : undefined);
  }

  get health(): GpuHealth {
    return this.#options.health;
  }

  leave(): void {
    this.health.end();
    this.#absence?.end();
    this.#release?.end();
    this.#grants?.leave();
    this.pods.stop();
    this.#podResources.close();
    this.#api.close();
  }
}

function gpusOf(node: GpuNode, { record }: Session): readonly string[] {
  return node.allocations.find(({ id }) => id === record.allocation)?.specification.gpus ?? [];
}

/** In a pod its service account, else KUBECONFIG or ~/.kube/config. */
function loadApi(): ApiServer {
  try {
    return ApiServer.load();
  } catch (error) {
    throw new ProxyError('KUBECONFIG_MISSING', { reason: (error as Error).message });
  }
}
