import type { V1Pod } from '@kubernetes/client-node';
import { assignedHolding, type Holding } from '@nvidia-virtual/kube-common/holding';
import { asksToSuspend } from '@nvidia-virtual/kube-common/suspended';
import type { AllocationSpecification, GpuRecord, Owner } from '@nvidia-virtual/ledger';
import { type ErrorCode, ProxyError } from '@nvidia-virtual/service/errors';
import type { Logger } from 'pino';
import type { Allocation } from '../allocations/allocation.js';
import type { GpuHealth } from '../gpus/health.js';
import type { GpuNode } from '../node.js';
import type { BindableGrant } from '../node-types.js';
import { requestOf } from './container-request.js';
import { isOver, type NodePods } from './node-pods.js';
import type { Peer } from './peer.js';
import { place } from './placement.js';
import type { EventReason, PodEvents } from './pod-events.js';
import { isStatic, kubeletUid } from './pod-identity.js';
import { type Holders, holdersOf, isHolder, type PodResources } from './pod-resources.js';
import { endsBefore, type RetryOptions, retryUntil } from './retry.js';
import { asRefusal } from './served-grant.js';
import { type SlotSettings, type SlotSize, slotsOf, slotsTaken } from './slots.js';
import { findTenant } from './tenant.js';

interface BindingOptions {
  readonly node: GpuNode;
  readonly pods: NodePods;
  readonly podResources: PodResources;
  readonly events: PodEvents;
  readonly logger: Logger;
  readonly slotSize: SlotSize;
  readonly health: Pick<GpuHealth, 'reason'>;
  /**
   * Timeouts of a first connect in milliseconds: for the API server and the kubelet, and for each
   * allocation that had the slots before.
   */
  readonly patienceMs: number;
}

/** Time to notice the end of a container's programs. */
const END_SEEN_MS = 5000;

const REASONS: Partial<Record<ErrorCode, EventReason>> = {
  POD_REQUEST_WRONG: 'GpuRequestWrong',
  ASSIGNMENT_WRONG: 'GpuRequestWrong',
  CONTAINER_ASKS_NOTHING: 'GpuAccessRefused',
  PEER_OTHER_CONTAINER: 'GpuAccessRefused',
  PEER_OTHER_POD: 'GpuAccessRefused',
  PEER_SANDBOXED: 'GpuAccessRefused',
  SLOTS_OF_ANOTHER: 'GpuAccessRefused',
  LIBRARY_FOREIGN: 'GpuImageUnsuitable',
  LIBRARY_MUSL: 'GpuImageUnsuitable',
  VERSION_MISSING: 'GpuVersionUnknown',
  MEMORY_QUOTA_REACHED: 'GpuMemoryQuotaReached',
  PINNED_MEMORY_REACHED: 'GpuLimitReached',
  HANDLES_REACHED: 'GpuLimitReached',
  THREADS_REACHED: 'GpuLimitReached',
  OVERRUN_REACHED: 'GpuLimitReached',
  SESSIONS_FULL: 'GpuLimitReached',
  MEMORY_BEYOND_QUOTA: 'GpuMemoryBeyondQuota',
  MEMORY_KEPT: 'GpuMemoryBeyondQuota',
  WORKER_DIED: 'GpuWorkerDied',
  MEMORY_NOT_BACK: 'GpuNotResumed',
  REPORT_ENDLESS: 'GpuWorkerDied',
  CACHE_BEYOND_LIMIT: 'GpuLimitReached',
  XID_REPORTED: 'GpuXid',
};

export function eventReason(code: ErrorCode): EventReason {
  return REASONS[code] ?? 'GpuNotAvailable';
}

/**
 * Binds a grant: turns it into an allocation when the first program of its container connects. Only
 * the connection shows which container has the grant.
 */
export class Binding {
  readonly #options: BindingOptions;

  constructor(options: BindingOptions) {
    this.#options = options;
  }

  /** @throws ProxyError with the reason, which is also written as an event of the pod */
  async bind(grant: BindableGrant, peer: Peer): Promise<Allocation> {
    const { pods, events } = this.#options;
    try {
      return await this.#bind(grant, peer);
    } catch (error) {
      const refusal = asRefusal(error);
      const pod = pods.find(peer.podUid);
      if (pod) events.warn(targetOf(pod), eventReason(refusal.code), refusal.message);
      throw refusal;
    }
  }

  async #bind(grant: BindableGrant, peer: Peer): Promise<Allocation> {
    const { pod, container, holders } = await this.#findTenant(grant, peer);
    const owner = ownerOf(pod, container, peer);
    // A wrong request is refused before any predecessor is ended.
    requestOf(pod, container, grant.slots.length);
    const grantedTwice = await this.#awaitPredecessors(grant, owner, holders);
    const create = () => this.#create(grant, pod, owner, peer);
    // Retry while another pod shares the slots or is ending: its memory may become free.
    return grantedTwice || this.#someEnd()
      ? retryUntil(this.#retryOptions(grant, peer), create)
      : create();
  }

  #someEnd(): boolean {
    const { node, pods } = this.#options;
    const owners = node.allocations.flatMap(({ specification: { owner } }) => owner ?? []);
    return owners.some(({ podUid }) => !livesOn(pods, podUid));
  }

  /** Up to the reservation, it is synchronous: the scheduler may move the pod at any time. */
  async #create(
    grant: BindableGrant,
    found: V1Pod,
    owner: Owner,
    { pid }: Peer,
  ): Promise<Allocation> {
    const { node, pods, logger } = this.#options;
    const bound = node.allocations.find(({ id }) => id === grant.id)?.specification.owner;
    if (bound)
      throw new ProxyError('PEER_OTHER_POD', {
        pid,
        id: grant.id,
        pod: `${bound.namespace}/${bound.pod}`,
        owner: bound.container,
      });
    const pod = pods.find(owner.podUid) ?? found;
    const request = requestOf(pod, owner.container, grant.slots.length);
    const shape = place(request, this.#view(grant));
    const allocation = await node.create({
      name: `${owner.namespace}/${owner.pod}`.slice(0, 128),
      ...shape,
      priority: request.priority,
      mode: request.mode,
      latency: request.latency,
      trace: request.trace,
      suspended: asksToSuspend(pod),
      ...{ owner, grant },
    });
    if (allocation.suspended) node.emit('suspensionChanged', allocation.specification);
    logger.info(
      { allocation: grant.id, owner, gpus: shape.gpus, slots: grant.slots },
      'grant bound to its pod',
    );
    return allocation;
  }

  #findTenant(
    grant: BindableGrant,
    peer: Peer,
  ): Promise<{ pod: V1Pod; container: string; holders: Holders }> {
    const { pods, podResources } = this.#options;
    const { slots } = grant;
    return retryUntil(this.#retryOptions(grant, peer), async () => {
      const pod = pods.find(peer.podUid);
      if (!pod)
        throw new ProxyError('POD_NOT_KNOWN', {
          uid: peer.podUid,
          reason: pods.trouble ?? 'The API server lists no such pod on this node.',
        });
      if (isOver(pod))
        throw new ProxyError('POD_NOT_KNOWN', {
          uid: peer.podUid,
          reason: 'The pod has ended.',
        });
      const holders = await podResources.holders();
      return { pod, container: findTenant({ peer, pod, slots, holders }), holders };
    });
  }

  /**
   * Ends allocations that had these slots before. The kubelet reassigned the slots, so their
   * containers (init containers of this pod, or other pods) have ended, unless the kubelet granted
   * slots twice. Memory is free after the exit of the last worker; a worker that hangs in the
   * driver does not exit, even if killed.
   * @returns whether a live container also has one of the slots
   */
  async #awaitPredecessors(
    { id, slots }: BindableGrant,
    owner: Owner,
    holders: Holders,
  ): Promise<boolean> {
    const { node, logger } = this.#options;
    const shares = (specification: AllocationSpecification) =>
      specification.slots?.some((slot) => slots.includes(slot));
    const sharing = node.allocations.filter((one) => one.id !== id && shares(one.specification));
    const others = sharing.filter(
      ({ specification: { owner: former } }) =>
        former && this.#holdsToo(former, owner, slots, holders),
    );
    for (const { id: other, specification } of others)
      logger.warn(
        { allocation: id, other, pod: specification.owner },
        'the kubelet gave the same slots to two live containers: each gets its part',
      );
    for (const before of sharing.filter((one) => !others.includes(one))) {
      logger.info(
        { allocation: id, predecessor: before.id },
        'the slots become free when their former allocation has ended',
      );
      await this.#endPredecessor(before, slots, owner);
    }
    return others.length > 0;
  }

  /** The kubelet never lists init containers that run to completion. */
  #holdsToo(former: Owner, owner: Owner, slots: readonly string[], holders: Holders): boolean {
    const isSame = former.podUid === owner.podUid && former.container === owner.container;
    const listed = holdersOf(slots, holders).some(
      (holder) => isHolder(holder, former) && holder.container === former.container,
    );
    return listed && !isSame && livesOn(this.#options.pods, former.podUid);
  }

  /** @throws ProxyError SLOTS_NOT_FREE */
  async #endPredecessor(before: Allocation, slots: readonly string[], owner: Owner): Promise<void> {
    const { node, patienceMs } = this.#options;
    const former = before.specification.owner;
    const ofSamePod = former?.podUid === owner.podUid;
    const ended = await endsBefore(Math.min(patienceMs, END_SEEN_MS), before.whenIdle());
    if (!ended && !ofSamePod) this.#tellFormer(former, slots, owner);
    const end = ofSamePod ? node.delete(before, { force: true }) : node.release(before);
    if (await endsBefore(patienceMs, end)) return;
    const workers = before.sessions.map(({ workerPid }) => workerPid).join(', ');
    throw new ProxyError('SLOTS_NOT_FREE', {
      slots: slots.join(', '),
      pod: `${former?.namespace}/${former?.pod}`,
      workers,
    });
  }

  /** Writes an event of the former pod, if it lives, before its programs are killed. */
  #tellFormer(
    former: Owner | undefined,
    slots: readonly string[],
    { namespace, pod: name }: Owner,
  ): void {
    const pod = former && this.#options.pods.find(former.podUid);
    if (!pod || isOver(pod)) return;
    const { message } = new ProxyError('SLOTS_GIVEN_AWAY', {
      slots: slots.join(', '),
      pod: `${namespace}/${name}`,
    });
    this.#options.events.warn(targetOf(pod), 'GpuNotAvailable', message);
  }

  #view({ id }: BindableGrant) {
    const { node } = this.#options;
    const settings: SlotSettings = {
      ...this.#options.slotSize,
      warmWorkers: (gpu) => node.settings.warmWorkers(gpu),
      oversubscription: (gpu) => node.settings.oversubscription(gpu),
    };
    const present = node.promised.filter((one) => one.id !== id);
    const assigned = this.#assigned();
    return {
      ...settings,
      gpus: node.gpus,
      free: (gpu: GpuRecord) =>
        Math.max(0, slotsOf(gpu, settings).count - slotsTaken(gpu, present, assigned)),
      unhealthy: (gpu: GpuRecord) => this.#options.health.reason(gpu),
      admit: (wish: Parameters<GpuNode['admit']>[0]) => node.admit(wish),
    };
  }

  /** GPUs that our scheduler assigned to live pods, by the kubelet's UIDs. */
  #assigned(): Map<string, Holding> {
    const assigned = new Map<string, Holding>();
    for (const pod of this.#options.pods.all) {
      const holding = isOver(pod) ? undefined : assignedHolding(pod);
      if (holding) assigned.set(targetOf(pod).uid, holding);
    }
    return assigned;
  }

  #retryOptions({ id }: BindableGrant, { pid }: Peer): RetryOptions {
    const { pods, patienceMs, logger } = this.#options;
    const failed = (reason: ProxyError) =>
      logger.warn({ allocation: id, pid }, `a program waits for its GPU: ${reason.message}`);
    return { deadline: Date.now() + patienceMs, source: pods, failed };
  }
}

/** A static pod can run while the API server does not list its mirror pod. */
function livesOn(pods: NodePods, podUid: string): boolean {
  const pod = pods.find(podUid);
  return pod ? !isOver(pod) : isStatic(podUid);
}

/** The target of an event. kubectl also searches events of a static pod by the kubelet's UID. */
export function targetOf(pod: V1Pod) {
  return {
    namespace: pod.metadata?.namespace ?? '',
    name: pod.metadata?.name ?? '',
    uid: kubeletUid(pod),
  };
}

function ownerOf({ metadata }: V1Pod, container: string, { podUid }: Peer): Owner {
  return { namespace: metadata?.namespace ?? '', pod: metadata?.name ?? '', podUid, container };
}
