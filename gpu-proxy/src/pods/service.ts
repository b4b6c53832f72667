import type { Socket } from 'node:net';
import { ApiServer } from '@nvidia-virtual/kube-common/api-server';
import type { Arrival, PlacedPod } from '@nvidia-virtual/kube-common/assignment';
import type { AllocationSpecification, Owner } from '@nvidia-virtual/ledger';
import { ProxyError } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import type { GpuHealth } from '../gpus/health.js';
import { type XidReport, xidFact } from '../gpus/xids.js';
import type { Addon } from '../host/addon.js';
import type { Installation } from '../host/installation.js';
import type { StateDirectory } from '../host/state-directory.js';
import type { GpuNode } from '../node.js';
import type { Session } from '../sessions/session.js';
import { Binding, eventReason, targetOf } from './binding.js';
import { Grants } from './grants.js';
import { ImageCheck } from './image-check.js';
import { NodePods } from './node-pods.js';
import { identifyPeer } from './peer.js';
import { placedPods } from './placed-pods.js';
import { PodEvents } from './pod-events.js';
import { PodMoves } from './pod-moves.js';
import { PodResources } from './pod-resources.js';
import type { PodWishes } from './pod-wishes.js';
import { Release } from './release.js';
import type { ServedGrant } from './served-grant.js';
import type { SlotSize } from './slots.js';
import { suspensionEvent } from './suspension-event.js';
import { followSuspensions } from './suspensions.js';
import { containerNamed } from './tenant.js';

interface KubernetesOptions {
  /** Name of the node in Kubernetes. */
  readonly nodeName: string;
  readonly kubeletRoot: string;
  readonly slotSize: SlotSize;
  readonly addon: Addon;
  readonly installation: Installation;
  readonly logger: Logger;
  readonly patienceMs: number;
  readonly health: GpuHealth;
}

/**
 * The Kubernetes part of a node: pods, grants, binding and release.
 */
export class KubernetesNode {
  readonly pods: NodePods;
  readonly events: PodEvents;
  readonly #options: KubernetesOptions;
  readonly #api: ApiServer;
  readonly #podResources: PodResources;
  #node: GpuNode | undefined;
  #grants: Grants | undefined;
  #release: Release | undefined;
  #imageCheck: ImageCheck | undefined;
  #suspensions: PodWishes<boolean> | undefined;
  #moves: PodMoves | undefined;

  /** @throws ProxyError KUBECONFIG_MISSING, KUBECONFIG_UNREADABLE */
  constructor(options: KubernetesOptions) {
    this.#options = options;
    this.#api = loadApi();
    const { nodeName, kubeletRoot, logger } = options;
    this.pods = new NodePods(this.#api, nodeName, logger);
    this.events = new PodEvents(this.#api, nodeName, logger);
    this.#podResources = new PodResources(kubeletRoot);
  }

  /** Reports errors of the node to pods. Called before takeover, so earlier errors are included. */
  observe(node: GpuNode): void {
    node.on('trouble', (allocation, error) => this.#tellPod(allocation, error));
    node.on('suspensionChanged', (allocation) => this.#noteSuspension(allocation));
    node.on('xid', (report) => this.#noteXid(report));
  }

  /** Starts to serve the grants of this node. */
  start(node: GpuNode, state: StateDirectory): void {
    const { addon, installation, logger, slotSize, patienceMs, health } = this.#options;
    const { pods, events } = this;
    const podResources = this.#podResources;
    this.#node = node;
    const binding = new Binding({
      node,
      pods,
      podResources,
      events,
      logger,
      slotSize,
      patienceMs,
      health,
    });
    this.#grants = new Grants({ node, state, addon, binding, logger });
    const grants = this.#grants;
    this.#release = new Release({ node, grants, pods, podResources, logger });
    this.#imageCheck = new ImageCheck({ node, grants, pods, events, installation, logger });
    this.#suspensions = followSuspensions({ node, pods, events, logger });
    this.#moves = new PodMoves({ node, pods, events, logger });
    node.on('sessionEnded', ({ session }) => health.noteEnd(session, gpusOf(node, session)));
    this.#noteUntold(node);
    pods.start();
  }

  /** Unbound grants. */
  get grants(): ServedGrant[] {
    return this.#grants?.all ?? [];
  }

  /** See PodMoves. */
  get arrivals(): Arrival[] {
    return this.#moves?.arrivals ?? [];
  }

  /** See placedPods(). */
  get placed(): PlacedPod[] {
    const allocations = this.#node?.allocations ?? [];
    return placedPods(
      allocations.map(({ specification }) => specification),
      this.pods,
    );
  }

  /** Only the owning container of the pod may use an allocation. */
  whyNotAllowed(
    { owner, id }: AllocationSpecification,
    connection: Socket,
  ): ProxyError | undefined {
    if (!owner) return undefined;
    try {
      const peer = identifyPeer(this.#options.addon, connection);
      const pod = this.pods.find(peer.podUid);
      const values = {
        pid: peer.pid,
        id,
        pod: `${owner.namespace}/${owner.pod}`,
        owner: owner.container,
      };
      let refusal: ProxyError | undefined;
      if (peer.podUid !== owner.podUid) refusal = new ProxyError('PEER_OTHER_POD', values);
      const container = pod && containerNamed(pod, peer.containerId);
      if (!refusal && container !== undefined && container !== owner.container)
        refusal = new ProxyError('PEER_OTHER_CONTAINER', { ...values, container });
      if (refusal && pod)
        this.events.warn(targetOf(pod), eventReason(refusal.code), refusal.message);
      return refusal;
    } catch (error) {
      if (error instanceof ProxyError) return error;
      throw error;
    }
  }

  #noteSuspension({ id, owner, suspendedBy }: AllocationSpecification): void {
    if (!owner) return;
    const [reason, sentence] = suspensionEvent(owner, suspendedBy);
    const told = () => this.#node?.noteTold(id, reason === 'GpuSuspended');
    this.events.note(targetOfOwner(owner), reason, sentence, told);
  }

  /** An earlier gpu-proxy may have been killed after it suspended or resumed them. */
  #noteUntold(node: GpuNode): void {
    for (const { specification, suspended } of node.allocations) {
      const { toldSuspended, suspendedBy, checkpoint } = specification;
      // A checkpoint suspends without an event.
      const untold = toldSuspended ? !suspended : suspended && suspendedBy && !checkpoint;
      if (untold) this.#noteSuspension(specification);
    }
  }

  #tellPod({ id, owner }: AllocationSpecification, error: ProxyError): void {
    if (!owner) return;
    const pod = targetOfOwner(owner);
    const reason = eventReason(error.code);
    // Programs at a limit, or in a retry loop, cause it repeatedly with different figures.
    const repeated =
      reason === 'GpuMemoryQuotaReached' ||
      reason === 'GpuLimitReached' ||
      error.code === 'ALLOCATION_DRAINING';
    this.events.warn(pod, reason, error.message, repeated ? `${error.code} ${id}` : undefined);
  }

  /**
   * Errors of programs are no events of the node: tenants can cause any number of them, and NVML
   * does not name the program.
   */
  #noteXid(report: XidReport): void {
    const { gpu, xid } = report;
    const { nodeName, logger, health } = this.#options;
    const { meaning, consequence } = xidFact(xid);
    health.noteXid(report);
    if (consequence === 'program') return;
    const figures = { xid, gpu, meaning, consequence: CONSEQUENCES[consequence] };
    const { message } = new ProxyError('XID_REPORTED', figures);
    logger.error({ gpu, xid, count: report.count }, message);
    const target = { kind: 'Node', namespace: 'default', name: nodeName, uid: nodeName } as const;
    this.events.warn(target, eventReason('XID_REPORTED'), message);
  }

  get health(): GpuHealth {
    return this.#options.health;
  }

  leave(): void {
    this.#node = undefined;
    this.health.end();
    this.#release?.end();
    this.#imageCheck?.end();
    this.#suspensions?.end();
    this.#moves?.end();
    this.#grants?.leave();
    this.pods.stop();
    this.#podResources.close();
    this.#api.close();
  }
}

function targetOfOwner({ namespace, pod: name, podUid: uid }: Owner) {
  return { namespace, name, uid };
}

const CONSEQUENCES = {
  probe: 'A test worker decides whether the GPU can be used.',
  reset: 'The GPU cannot be used until it is reset.',
} as const;

function gpusOf(node: GpuNode, { record }: Session): readonly string[] {
  return node.allocations.find(({ id }) => id === record.allocation)?.specification.gpus ?? [];
}

/** In a pod its service account, else KUBECONFIG or ~/.kube/config. */
function loadApi(): ApiServer {
  try {
    return ApiServer.load();
  } catch (error) {
    if (error instanceof ProxyError) throw error;
    throw new ProxyError('KUBECONFIG_MISSING', { reason: (error as Error).message });
  }
}
